from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.data.publishers.npz import read_npz, read_sparse_npz
from pinoise.errors import UserError


def arrays() -> dict[str, Any]:
    return {
        "X_train": np.arange(12, dtype=np.float16).reshape(3, 2, 2),
        "y_train": np.array([0, 1, 2], dtype=np.uint8),
        "X_test": np.ones((2, 2, 2), dtype=np.float16),
        "y_test": np.array([2, 0], dtype=np.uint8),
        "subject_train": np.array([7, 7, 9], dtype=np.uint8),
        "subject_test": np.array([1, 2], dtype=np.uint8),
    }


def test_samples_keep_their_type_and_labels_are_int64(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays(), class_names=np.array(["a", "b", "c"]))
    data = read_npz([tmp_path / "a.npz"], name="toy", groups="subject", class_names=("x", "y", "z"))
    assert data.train.x.dtype == np.float16
    assert (data.shape, data.n_classes, data.class_names) == ((2, 2), 3, ("a", "b", "c"))
    assert data.test is not None
    for part, y, groups in ((data.train, [0, 1, 2], [7, 7, 9]), (data.test, [2, 0], [1, 2])):
        assert part.y is not None
        assert part.groups is not None
        assert part.y.dtype == part.groups.dtype == np.int64
        assert (part.y.tolist(), part.groups.tolist()) == (y, groups)


def test_samples_alone_have_no_labels_and_no_test_part(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.zeros((4, 3)), names=np.array(["a"] * 4))
    data = read_npz([tmp_path / "a.npz"], name="toy")
    assert (len(data.train), data.train.y, data.test) == (4, None, None)


def test_a_sparse_matrix_stays_sparse_with_sorted_columns(tmp_path: Path) -> None:
    dense = np.array([[0, 2.0, 3], [4, 0, 0]])
    unsorted = sp.csr_matrix((np.array([3.0, 2, 4]), np.array([2, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    sp.save_npz(tmp_path / "a.npz", unsorted)
    data = read_sparse_npz([tmp_path / "a.npz"], name="toy")
    assert isinstance(data.train.x, sp.csr_array)
    assert data.train.x.dtype == np.float32
    assert data.train.x.indices.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(data.train.x.toarray(), dense)


def test_a_sparse_matrix_of_another_format_or_with_bad_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csc_matrix(np.eye(3)))
    with pytest.raises(UserError, match=r"format b?'csc': only csr is read"):
        read_sparse_npz([path], name="toy")
    np.savez(path, data=[1.0], indices=[9], indptr=[0, 1], shape=[1, 3], format=b"csr")
    with pytest.raises(UserError, match=r"cannot read .*a.npz"):
        read_sparse_npz([path], name="toy")


class Trap:
    """Unpickling this would raise a different error, so a pickle that is loaded is noticed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (eval, ("1 / 0",))


def test_a_pickled_object_is_never_loaded(tmp_path: Path) -> None:
    content = arrays()
    content["X_train"] = np.array([Trap(), Trap(), Trap()], dtype=object)
    np.savez(tmp_path / "evil.npz", **content)
    with pytest.raises(UserError, match=r"cannot read .*evil.npz: .*allow_pickle=False"):
        read_npz([tmp_path / "evil.npz"], name="toy")


@pytest.mark.parametrize(
    "labels", [np.array([0.0, 1, 2]), np.array([-1, 0, 1]), np.array([0, 1]), np.array(["a", "b", "c"])]
)
def test_labels_that_are_not_whole_numbers_from_0_are_refused(labels: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **(arrays() | {"y_train": labels}))
    with pytest.raises(UserError, match="array 'y_train': 3 whole numbers from 0 are needed"):
        read_npz([tmp_path / "a.npz"], name="toy")


def test_a_missing_array_a_damaged_file_and_a_bare_array_are_one_sentence_each(tmp_path: Path) -> None:
    content = arrays()
    del content["y_test"]
    path = tmp_path / "a.npz"
    np.savez(path, **content)
    with pytest.raises(UserError, match=r"lacks an array: y_test"):
        read_npz([path], name="toy")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(UserError, match=r"cannot read .*a.npz"):
        read_npz([path], name="toy")
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(UserError, match="holds one array and no names"):
        read_npz([path], name="toy")
