"""Epsilon of the PASCAL Large Scale Learning Challenge, as LIBSVM's collection publishes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import GIB, open_compressed
from pinoise.data.formats.svmlight import parse_svmlight
from pinoise.errors import UserError

_PUBLISHER = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"


def read_epsilon(paths: Sequence[Path], *, name: str, features: int = 2000) -> Dataset:
    """Read the training and the test file, plain or compressed by gzip or bzip2; labels −1 and 1 become 0 and 1."""
    train, test = (_part(path, features) for path in paths)
    return Dataset(name, train=train, test=test, class_names=("-1", "1"))


def _part(path: Path, features: int) -> Part:
    with open_compressed(path, limit=32 * GIB) as stream:
        raw = parse_svmlight(stream, where=str(path), n_features=features, first_index=1, dense=True).train
    y = np.asarray(raw.y)
    wrong = np.flatnonzero(np.abs(y) != 1)
    if wrong.size:
        raise UserError(f"{path}, row {wrong[0] + 1}: the label {y[wrong[0]]:g} was found; allowed are -1 and 1.")
    return Part(raw.x, (y > 0).astype(np.int64))


ENTRIES = (
    Entry(
        name="epsilon",
        title="Epsilon: 500,000 rows of 2,000 dense features, two classes (3.7 GiB in memory)",
        shape=(2000,),
        classes=2,
        rows=(400_000, 100_000),
        split="the publisher's",
        licence="none stated",
        source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html#epsilon",
        reader=partial(read_epsilon, name="epsilon"),
        files=(
            DataFile("epsilon_normalized.bz2", url=f"{_PUBLISHER}/epsilon_normalized.bz2"),
            DataFile("epsilon_normalized.t.bz2", url=f"{_PUBLISHER}/epsilon_normalized.t.bz2"),
        ),
    ),
    Entry(
        name="epsilon_sample",
        title="Epsilon's first 100 rows of each part: to try readers on, not to measure with",
        shape=(2000,),
        classes=2,
        rows=(100, 100),
        split="the publisher's",
        licence="none stated",
        source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html#epsilon",
        reader=partial(read_epsilon, name="epsilon_sample"),
        files=(
            DataFile(
                "epsilon_normalized.gz",
                sha256="a0a0dbc2264117c5b83552740304ce27754cbffbbd2428f83c60df25050dba73",
            ),
            DataFile(
                "epsilon_normalized.t.gz",
                sha256="a931bd0ac66e12059358cbd34e95eb1084e994f3ba53f2a3aa25f54eea2c3b2d",
            ),
        ),
    ),
)
