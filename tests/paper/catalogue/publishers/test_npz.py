from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.errors import UserError
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set

TOY = replace(entry("usps"), name="toy", classes=3, rows=(3, 0), class_names=None)


def arrays() -> dict[str, Any]:
    return {
        "X_train": np.arange(12, dtype=np.float16).reshape(3, 2, 2),
        "y_train": np.array([0, 1, 2], dtype=np.uint8),
        "X_test": np.ones((2, 2, 2), dtype=np.float16),
        "y_test": np.array([2, 0], dtype=np.uint8),
        "subject_train": np.array([7, 7, 9], dtype=np.uint8),
        "subject_test": np.array([1, 2], dtype=np.uint8),
    }


def test_both_parts_come_with_labels_and_groups_as_int64(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays())
    data = read_set(replace(TOY, class_names=("x", "y", "z")), [tmp_path / "a.npz"])
    assert (data.name, data.shape, data.n_classes, data.class_names) == ("toy", (2, 2), 3, ("x", "y", "z"))
    np.testing.assert_array_equal(data.train.x, arrays()["X_train"])
    assert data.test is not None
    for part, y, groups in ((data.train, [0, 1, 2], [7, 7, 9]), (data.test, [2, 0], [1, 2])):
        assert part.y is not None
        assert part.groups is not None
        assert part.y.dtype == part.groups.dtype == np.int64
        assert (part.y.tolist(), part.groups.tolist()) == (y, groups)


def test_a_sparse_matrix_stays_sparse_with_sorted_columns(tmp_path: Path) -> None:
    unsorted = sp.csr_matrix((np.array([3.0, 2, 4]), np.array([2, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    sp.save_npz(tmp_path / "a.npz", unsorted)
    data = read_set(TOY, [tmp_path / "a.npz"])
    assert isinstance(data.train.x, sp.csr_array)
    assert data.train.x.indices.tolist() == [1, 2, 0]
    assert (data.train.y, data.test) == (None, None)


@pytest.mark.parametrize("labels", [np.array([0, 1, 3]), np.array([-1, 0, 1]), np.array([0.5, 1, 2])])
def test_labels_without_a_name_are_refused(labels: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **(arrays() | {"y_train": labels}))
    with pytest.raises(UserError, match="has no entry among the 3 class names"):
        read_set(replace(TOY, class_names=("x", "y", "z")), [tmp_path / "a.npz"])
