from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set

TRAIN = b"-1 1:-0.0108282 2:0.5 3:0.0422148\n1 1:0.25 2:-0.125 3:1e-05\n1 1:1 2:2 3:3\n"
TEST = b"1 1:0.5 2:0.5 3:0.5\n-1 1:-1 2:-2 3:-3\n"


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, bytes])
def test_labels_become_0_and_1_and_features_stay_dense(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    paths = [tmp_path / "epsilon_normalized.bz2", tmp_path / "epsilon_normalized.t.bz2"]
    for path, text in zip(paths, (TRAIN, TEST), strict=True):
        path.write_bytes(compress(text))
    data = read_set(replace(entry("epsilon"), shape=(3,)), paths)
    assert data.test is not None
    assert data.train.y is not None
    assert data.test.y is not None
    assert data.train.y.tolist() == [0, 1, 1]
    assert data.test.y.tolist() == [1, 0]
    assert isinstance(data.train.x, np.ndarray)
    np.testing.assert_allclose(data.train.x[0], [-0.0108282, 0.5, 0.0422148], rtol=1e-6)
    assert (data.shape, data.n_classes, data.class_names) == ((3,), 2, ("-1", "1"))
