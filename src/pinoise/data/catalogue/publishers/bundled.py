"""Small sets that come with scikit-learn and need no file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.splitting import split

_SPLIT = "by class, 80/20 with a fixed seed; scikit-learn has no split"


def read_bundled(paths: Sequence[Path], *, name: str) -> Dataset:
    """Return scikit-learn's set ``name`` with its stratified split.

    >>> data = read_bundled((), name="wine")
    >>> len(data.train), len(data.test), data.class_names
    (142, 36, ('class_0', 'class_1', 'class_2'))
    """
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    whole = Dataset(
        name,
        train=Part(np.asarray(bunch.data, dtype=np.float32), np.asarray(bunch.target, dtype=np.int64)),
        feature_names=tuple(str(feature) for feature in bunch.feature_names),
        class_names=tuple(str(label) for label in bunch.target_names),
    )
    return split(whole)


def _entry(name: str, *, title: str, features: int, classes: int, rows: tuple[int, int], source: str) -> Entry:
    return Entry(
        name=name,
        title=title,
        shape=(features,),
        classes=classes,
        rows=rows,
        split=_SPLIT,
        licence="CC BY 4.0",
        source=source,
        reader=partial(read_bundled, name=name),
        parsed=False,
    )


ENTRIES = (
    _entry(
        "digits",
        title="Handwritten digits of 8 × 8 pixels as vectors of 64 features",
        features=64,
        classes=10,
        rows=(1437, 360),
        source="https://archive.ics.uci.edu/dataset/80 (the test part, as bundled with scikit-learn)",
    ),
    _entry(
        "wine",
        title="Chemical analysis of wines from three growers",
        features=13,
        classes=3,
        rows=(142, 36),
        source="https://archive.ics.uci.edu/dataset/109",
    ),
    _entry(
        "breast_cancer",
        title="Wisconsin diagnostic breast cancer: features of cell nuclei",
        features=30,
        classes=2,
        rows=(455, 114),
        source="https://archive.ics.uci.edu/dataset/17",
    ),
)
