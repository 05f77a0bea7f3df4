"""A test part for sources without one."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import numpy.typing as npt

from pinoise.choices import MANY_ROWS
from pinoise.data.dataset import Dataset, Labels, Targets, all_rows, is_measured, row_slices
from pinoise.errors import UserError

RowNumbers = npt.NDArray[np.int64]


def split(dataset: Dataset, *, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """Return a data set with a test part: its own, or a random share of the training rows.

    The share has the same proportions of classes; rows with a measurement are drawn at random. A class of one row
    stays in training. Rows of one group (a query, a person) stay on one side, because a test row must not have
    siblings in training. Of more than 2²⁰ rows each is held out by the toss of a coin.

    >>> from pinoise.data.dataset import Part
    >>> data = Dataset("toy", train=Part(np.zeros((10, 2)), y=np.arange(10) % 2))
    >>> parts = split(data)
    >>> len(parts.train), len(parts.test), parts.notes
    (8, 2, ('held out 2 of 10 rows for the test part, by class (seed 0)',))
    """
    if dataset.test is not None:
        return dataset
    if not 0 < test_fraction < 1:
        raise UserError(f"test_fraction is {test_fraction}: it must lie between 0 and 1.")
    whole = dataset.train
    n = len(whole)
    if n < 2:
        raise UserError(f"{dataset.name} has {n} row: a split needs two or more.")
    notes = list(dataset.notes)
    groups = np.empty(0) if whole.groups is None else np.unique(whole.groups)
    if len(groups) > 1:
        held = np.isin(whole.groups, groups[_drawn(len(groups), test_fraction, seed)[1]])  # type: ignore[arg-type]
        how = "by group"
    elif n > MANY_ROWS:  # of which no list is made; classes keep their shares anyway
        random = np.random.default_rng(seed)
        chunks = (random.random(rows.stop - rows.start) for rows in row_slices(whole.x))
        held, how = np.concatenate([chunk < test_fraction for chunk in chunks]), "at random"
    else:
        rows, how = _by_class(whole.y, n, test_fraction, seed, notes)
        held = np.isin(all_rows(n), rows)
    train, test = whole.take(all_rows(n)[~held]), whole.take(all_rows(n)[held])
    notes.append(f"held out {len(test)} of {n} rows for the test part, {how} (seed {seed})")
    return replace(dataset, train=train, test=test, notes=tuple(notes))


def stratified_rows(y: Labels, *, test_fraction: float = 0.2, seed: int = 0) -> tuple[RowNumbers, RowNumbers]:
    """Return the rows for training and for testing, each in the order of the source, by class.

    >>> y = np.repeat([0, 1], [10, 5])
    >>> train, test = stratified_rows(y)
    >>> len(train), np.bincount(y[test]).tolist()
    (12, [2, 1])
    """
    return _drawn(len(y), test_fraction, seed, y)


def _drawn(n: int, test_fraction: float, seed: int, y: Labels | None = None) -> tuple[RowNumbers, RowNumbers]:
    """Return rows for training and for testing, at random, or by class where there are labels."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(n), test_size=_test_rows(n, test_fraction), random_state=seed, stratify=y)
    return np.sort(train), np.sort(test)


def _by_class(y: Targets | None, n: int, test_fraction: float, seed: int, notes: list[str]) -> tuple[RowNumbers, str]:
    """Choose test rows from all classes that have a row to spare; add a note on the others."""
    if y is None or is_measured(y):
        return _drawn(n, test_fraction, seed)[1], "at random"
    y = y.astype(np.int64, copy=False)
    counts = np.bincount(y)
    single, classes = int((counts == 1).sum()), int((counts > 1).sum())
    rows = np.flatnonzero(counts[y] > 1)
    size = _test_rows(len(rows), test_fraction) if len(rows) > 1 else 0
    if classes == 0 or size < classes or len(rows) - size < classes:
        notes.append(f"{n} rows are too few to hold out some of each class: the split ignores classes")
        return _drawn(n, test_fraction, seed)[1], "at random"
    if single:
        notes.append(f"{single} {'class has' if single == 1 else 'classes have'} a single row, which stays in training")
    return rows[_drawn(len(rows), test_fraction, seed, y[rows])[1]], "by class"


def _test_rows(n: int, test_fraction: float) -> int:
    return min(n - 1, max(1, ceil(n * test_fraction)))
