"""A test part for sources without one."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import numpy.typing as npt

from pinoise.choices import MANY_ROWS
from pinoise.data.dataset import Dataset, Labels, Part, Targets, is_measured
from pinoise.errors import UserError

RowNumbers = npt.NDArray[np.int64]


def split(dataset: Dataset, *, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """Return a data set with a test part: its own, or a random share of the training rows.

    The share has the same proportions of classes; rows with a measurement are drawn at random. A class of one row
    stays in training. Rows of one group (a query, a person) stay on one side, because a test row must not have
    siblings in training. Of more than 2²⁰ rows each is held out by the toss of a coin, or groups are drawn.

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
    if n > MANY_ROWS:
        tossed, how = _by_coin(whole, test_fraction, seed)
        train, test = whole.chosen(~tossed), whole.chosen(tossed)
    else:
        if whole.groups is not None and len(np.unique(whole.groups)) > 1:
            rows, how = _by_group(whole.groups, test_fraction, seed), "by group"
        else:
            rows, how = _by_class(whole.y, n, test_fraction, seed, notes)
        train, test = whole.take(np.setdiff1d(np.arange(n), rows)), whole.take(rows)
    notes.append(f"held out {len(test)} of {n} rows for the test part, {how} (seed {seed})")
    return replace(dataset, train=train, test=test, notes=tuple(notes))


def _by_coin(whole: Part, test_fraction: float, seed: int) -> tuple[npt.NDArray[np.bool_], str]:
    """Hold out every row, or group, by the toss of a coin: among very many, classes keep their shares anyway."""
    random, n = np.random.default_rng(seed), len(whole)
    test = np.empty(n, np.bool_)
    for start in range(0, n, MANY_ROWS):
        stop = min(start + MANY_ROWS, n)
        test[start:stop] = random.random(stop - start) < test_fraction
    groups = whole.groups
    if groups is None or len(known := np.unique(groups)) < 2:
        return test, "at random"
    held = known[random.permutation(len(known))[: _test_rows(len(known), test_fraction)]]
    return np.isin(groups, held), "by group"


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

    size = _test_rows(n, test_fraction)
    train, test = train_test_split(np.arange(n), test_size=size, random_state=seed, stratify=y)
    return np.sort(train), np.sort(test)


def _by_group(groups: RowNumbers, test_fraction: float, seed: int) -> RowNumbers:
    from sklearn.model_selection import GroupShuffleSplit

    size = _test_rows(len(np.unique(groups)), test_fraction)
    _, test = next(GroupShuffleSplit(1, test_size=size, random_state=seed).split(groups, groups=groups))
    return np.sort(np.asarray(test, dtype=np.int64))


def _by_class(y: Targets | None, n: int, test_fraction: float, seed: int, notes: list[str]) -> tuple[RowNumbers, str]:
    """Choose test rows from all classes that have a row to spare; add a note on the others."""
    if y is None or is_measured(y):
        return _drawn(n, test_fraction, seed)[1], "at random"
    y = y.astype(np.int64, copy=False)
    counts = np.bincount(y)
    single = int((counts == 1).sum())
    rows = np.flatnonzero(counts[y] > 1)
    classes = int((counts > 1).sum())
    size = _test_rows(len(rows), test_fraction) if len(rows) > 1 else 0
    if classes == 0 or size < classes or len(rows) - size < classes:
        notes.append(f"{n} rows are too few to hold out some of each class: the split ignores classes")
        return _drawn(n, test_fraction, seed)[1], "at random"
    if single:
        notes.append(f"{single} {'class has' if single == 1 else 'classes have'} a single row, which stays in training")
    return rows[_drawn(len(rows), test_fraction, seed, y[rows])[1]], "by class"


def _test_rows(n: int, test_fraction: float) -> int:
    return min(n - 1, max(1, ceil(n * test_fraction)))
