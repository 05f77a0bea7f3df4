from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.data.formats.arrays import open_npz, read_npy, read_npz
from pinoise.data.lazy import FileRows
from pinoise.errors import UserError


def test_npy_stays_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(24).reshape(2, 3, 4))
    x = read_npy(tmp_path / "a.npy").train.x
    assert isinstance(x, FileRows)
    np.testing.assert_array_equal(x, np.arange(24).reshape(2, 3, 4))


def test_npz_with_a_test_part_names_and_groups(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        X_train=np.ones((3, 2)),
        y_train=[0, 1, 0],
        X_test=np.zeros((1, 2)),
        y_test=[1],
        subject_train=[5, 5, 6],
        subject_test=[7],
        feature_names=["a", "b"],
        class_names=np.array([b"x", b"y"]),
        index_train=[3, 1, 2],
    )
    raw = read_npz(tmp_path / "a.npz")
    assert raw.test is not None
    assert raw.train.x.shape == (3, 2)
    assert raw.test.x.shape == (1, 2)
    assert np.asarray(raw.train.groups).tolist() == [5, 5, 6]
    assert np.asarray(raw.test.groups).tolist() == [7]
    assert (raw.feature_names, raw.class_names) == (("a", "b"), ("x", "y"))
    assert raw.notes == ("left out 1 array of the file: index_train",)


@pytest.mark.parametrize("name", ["X", "x", "anything"])
def test_npz_with_one_array(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "a.npz", **{name: np.eye(3)})  # type: ignore[arg-type]
    raw = read_npz(tmp_path / "a.npz")
    np.testing.assert_array_equal(raw.train.x, np.eye(3))
    assert raw.train.y is None


def test_npz_with_samples_and_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=["b", "a"], unrelated=np.ones(7))
    raw = read_npz(tmp_path / "a.npz")
    assert np.asarray(raw.train.y).tolist() == ["b", "a"]
    assert raw.notes == ("left out 1 array of the file: unrelated",)


def test_rows_and_labels_of_an_npz_under_names_that_are_not_read_are_said_to_be_left_out(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X_train=np.eye(2), y=[0, 1], X_val=np.eye(2))
    raw = read_npz(tmp_path / "a.npz")
    assert (raw.train.y, raw.test) == (None, None)
    assert raw.notes == ("left out 2 arrays of the file: y, X_val",)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_a_sparse_matrix_that_scipy_saved(tmp_path: Path, layout: Literal["csr", "csc", "coo"]) -> None:
    dense = np.eye(4, dtype=np.float32) * 3
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(dense).asformat(layout))
    x = read_npz(tmp_path / "a.npz").train.x
    assert isinstance(x, sp.csr_array)
    np.testing.assert_array_equal(x.toarray(), dense)


def test_arrays_of_objects_are_never_unpickled(tmp_path: Path) -> None:
    objects = np.array([["a", 1]], dtype=object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "a.npz", X=objects)
    for read, name in ((read_npy, "a.npy"), (read_npz, "a.npz")):
        with pytest.raises(UserError, match=f"{name} holds an array of Python objects.*can run code"):
            read(tmp_path / name)


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: b"garbage" * 20])
def test_damaged_files_are_refused(tmp_path: Path, damage: object) -> None:
    np.save(tmp_path / "a.npy", np.ones((50, 3)))
    np.savez_compressed(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(50, 3)))
    for read, name in ((read_npy, "a.npy"), (read_npz, "a.npz")):
        path = tmp_path / name
        path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
        with pytest.raises(UserError, match=f"{name} is damaged, cut off or not what its name says"):
            read(path)


def test_a_changed_byte_inside_an_archive_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=np.ones((500, 3)))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match="is damaged"):
        read_npz(path)


def test_files_under_each_others_names_are_reported_apart(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)))
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    (tmp_path / "b.npy").rename(tmp_path / "b.npz")
    with pytest.raises(UserError, match=r"rename it to \.npz"):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(UserError, match=r"rename it to \.npy"):
        read_npz(tmp_path / "b.npz")


def test_unknown_names_are_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", data=np.ones((2, 2)), target=[0, 1])
    with pytest.raises(UserError, match=r"neither X_train nor X among its arrays \(data, target\)"):
        read_npz(tmp_path / "a.npz")


def test_test_labels_without_test_samples_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X_train=np.ones((2, 2)), y_test=[0, 1])
    with pytest.raises(UserError, match="has labels y_test and no samples X_test"):
        read_npz(tmp_path / "a.npz")


class Trap:
    """Unpickling this would raise a different error, so a pickle that is loaded is noticed."""

    def __reduce__(self) -> tuple[object, ...]:
        return (eval, ("1 / 0",))


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", X=np.array([Trap()], dtype=object))
    with pytest.raises(UserError, match=r"evil\.npz holds an array of Python objects"):
        read_npz(tmp_path / "evil.npz")


def test_a_sparse_matrix_with_columns_outside_its_shape_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", data=[1.0], indices=[9], indptr=[0, 1], shape=[1, 3], format=b"csr")
    with pytest.raises(UserError, match=r"a\.npz is a broken sparse matrix \(indices must be < 3\)"):
        read_npz(tmp_path / "a.npz")


def test_an_array_that_a_file_lacks_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.eye(2))
    with (
        pytest.raises(UserError, match=r"a\.npz is damaged.*y_test is not a file in the archive"),
        open_npz(tmp_path / "a.npz") as arrays,
    ):
        arrays["y_test"]
