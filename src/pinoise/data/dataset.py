"""What readers return: samples, optional labels and a split, still in the units of the file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.choices import MANY_ROWS
from pinoise.data.lazy import LazyArray
from pinoise.errors import UserError

Array = npt.NDArray[Any]

Item = TypeVar("Item")
Result = TypeVar("Result")

Samples = np.ndarray | sp.csr_array | LazyArray
"""Samples as rows: an array of shape (n, *shape), a sparse matrix of shape (n, d), or rows in files (images to decode,
an array that stays in its file) that become such an array when they are indexed."""

Labels = npt.NDArray[np.int64]
"""Class numbers from 0, one per row."""

RowNumbers = npt.NDArray[np.int64]

Targets = Labels | npt.NDArray[np.float64]
"""What scores an embedding, one per row: class numbers, or the values of a measurement."""

_BLOCK = 4096  # items given to the threads at once

CHUNK_VALUES = 1 << 22  # read at a time from a large array, so that a file is never loaded whole

HELD_VALUES = 1 << 26
"""Values of a table in a file up to which some of its rows are read into memory, when they are taken from it."""


class Origin(NamedTuple):
    """Which rows of their source some rows are, and how many the source has."""

    rows: npt.NDArray[np.integer]
    total: int


@dataclass(frozen=True)
class Part:
    """The rows of one side of a split; in ``RawArrays`` labels and groups are of whatever type the source has.

    >>> part = Part(np.zeros((9, 2))).take(np.array([8, 2, 5])).take(np.array([2, 0]))
    >>> part.origin.rows.tolist(), part.origin.total
    ([5, 8], 9)
    """

    x: Samples
    y: Targets | None = None
    groups: npt.NDArray[np.int64] | None = None  # query of a ranking set, subject of a recording
    names: tuple[str, ...] | None = None  # the file of every row, for a folder of images
    origin: Origin | None = None  # None for all rows of the source, in its order

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def take(self, rows: npt.NDArray[np.integer]) -> Part:
        """Return the given rows, in the given order. Images in files and tables too large for memory are not read."""
        numbers = np.where(rows < 0, rows + len(self), rows) if rows.min(initial=0) < 0 else rows
        origin = Origin(numbers, len(self)) if self.origin is None else self.origin
        return Part(
            x=_take(self.x, rows),
            y=None if self.y is None else self.y[rows],
            groups=None if self.groups is None else self.groups[rows],
            names=None if self.names is None else tuple(self.names[row] for row in rows.tolist()),
            origin=origin if self.origin is None else origin._replace(rows=origin.rows[rows]),
        )


Spans = tuple[tuple[int, int], ...]
"""Of each column that became several features: its first feature, and the one after its last."""


@dataclass(frozen=True)
class Dataset:
    """A named set of samples with its split; ``test`` is None where the source has no test part.

    >>> import numpy as np
    >>> data = Dataset("toy", train=Part(np.zeros((4, 3)), y=np.array([0, 1, 0, 1])))
    >>> len(data.train), data.shape, data.n_classes
    (4, (3,), 2)
    """

    name: str
    train: Part
    test: Part | None = None
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    spans: Spans = ()  # the features that make up one column of a table, such as the values of a category
    notes: tuple[str, ...] = ()  # what was done to the source: encoding, imputation, dropped columns

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(int(size) for size in self.train.x.shape[1:])

    @property
    def measures(self) -> bool:
        """Whether its labels are the values of a measurement rather than classes."""
        return is_measured(self.train.y)

    @property
    def n_classes(self) -> int:
        """The number of classes, 0 without labels and for a measurement."""
        if self.measures:
            return 0
        parts = [part.y for part in (self.train, self.test) if part is not None and part.y is not None]
        return int(max((int(y.max()) + 1 for y in parts if len(y)), default=0))

    def draw(self, rows: int) -> Dataset:
        """Return the set with at most ``rows`` training rows, drawn at random but always the same."""
        n = len(self.train)
        if rows >= n:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(all_rows(n))[:rows])
        return replace(self, train=self.train.take(chosen))


@dataclass(frozen=True)
class RawArrays:
    """What a source of arrays holds, and notes on how it was read."""

    train: Part
    test: Part | None = None
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    first_index: int | None = None  # number of the first feature in an svmlight file
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The training part, and the test part where there is one."""
        return (self.train,) if self.test is None else (self.train, self.test)


def is_measured(y: Targets | None) -> bool:
    """Whether labels are the values of a measurement: those of classes are whole numbers by type.

    >>> is_measured(np.array([0.5, 2.0])), is_measured(np.array([0, 2])), is_measured(None)
    (True, False, False)
    """
    return y is not None and y.dtype.kind == "f"


def all_rows(n: int) -> npt.NDArray[np.integer]:
    """Return the numbers of so many rows, in half the memory that NumPy takes where that holds them."""
    return np.arange(n, dtype=np.int32 if n < 1 << 31 else np.int64)


def _take(x: Samples, rows: npt.NDArray[np.integer]) -> Samples:
    if isinstance(x, LazyArray) and (x.ndim > 2 or len(x) * x.shape[1] > HELD_VALUES):
        return x.take(rows)
    return x[rows]


def row_slices(x: Samples | npt.NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows that together cover an array, each of a bounded number of values.

    >>> list(row_slices(np.zeros((5_000_000, 1))))
    [slice(0, 4194304, None), slice(4194304, 5000000, None)]
    """
    step = max(1, CHUNK_VALUES // max(1, int(np.prod(x.shape[1:]))))
    rows = int(x.shape[0])
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def fingerprint_parts(data: Dataset) -> str:
    """Return a checksum of all rows of the training part and, where there is one, of the test part, with their order.

    It covers shape, type and value of every sample, the class numbers, the groups, and the names of image files. Of a
    folder of images the bytes of the files count, which are not decoded. The cost is one pass over the data: SHA-256
    takes about 1.2 GB/s on each core that has instructions for it, so it is the disk that sets the time.

    >>> data = Dataset("toy", train=Part(np.eye(4)))
    >>> fingerprint_parts(data) == fingerprint_parts(data), fingerprint_parts(data) == fingerprint_parts(data.draw(3))
    (True, False)
    """
    digest = hashlib.sha256()
    for part in (data.train, data.test):
        if part is None:
            continue
        digest.update(fingerprint(part.x).encode())
        for numbers in (part.y, part.groups):
            digest.update(b"none" if numbers is None else hashlib.sha256(np.ascontiguousarray(numbers).data).digest())
        digest.update(json.dumps(part.names).encode())
    return digest.hexdigest()


def fingerprint(x: Samples) -> str:
    """Return a checksum of shape, type and all values, in passes over bounded chunks, on all cores.

    >>> zeros = np.zeros((3, 2))
    >>> fingerprint(zeros) == fingerprint(zeros.copy()), fingerprint(zeros) == fingerprint(zeros + 1)
    (True, False)
    """
    digest = hashlib.sha256(repr((tuple(map(int, x.shape)), str(x.dtype))).encode())
    arrays: list[Array | LazyArray] = [x.data, x.indices, x.indptr] if isinstance(x, sp.csr_array) else [x]

    def checksum(chunk: tuple[Array | LazyArray, slice]) -> bytes:
        values, rows = chunk
        return hashlib.sha256(np.ascontiguousarray(values[rows]).data).digest()

    found = x.file_checksums() if isinstance(x, LazyArray) else None
    if found is None:
        found = in_threads(checksum, [(array, rows) for array in arrays for rows in row_slices(array)])
    for each in found:
        digest.update(each)
    return digest.hexdigest()


def varies(x: Samples) -> bool:
    """Whether any feature differs between two rows.

    >>> varies(np.ones((3, 2))), varies(np.eye(2))
    (False, True)
    """
    if isinstance(x, sp.csr_array):
        return bool((x.max(axis=0) - x.min(axis=0)).toarray().any())
    return any(bool((x[chunk] != x[:1]).any()) for chunk in row_slices(x))


def split(dataset: Dataset, *, test_fraction: float = 0.2, seed: int = 0) -> Dataset:
    """Return a data set with a test part: its own, or a random share of the training rows.

    The share has the same proportions of classes; rows with a measurement are drawn at random. A class of one row
    stays in training. Rows of one group (a query, a person) stay on one side, because a test row must not have
    siblings in training. Of more than 2²⁰ rows each is held out by the toss of a coin.

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


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], *, bar: str | None = None
) -> Iterator[Result]:
    """Yield the results in order, as from ``map``, of work that releases Python's lock. ``bar`` names a progress bar.

    >>> list(in_threads(abs, [-2, 1]))
    [2, 1]
    """
    from tqdm import tqdm

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ThreadPoolExecutor(max_workers=cores) as pool:
        blocks = (pool.map(function, items[start : start + _BLOCK]) for start in range(0, len(items), _BLOCK))
        results = chain.from_iterable(blocks)
        yield from tqdm(results, total=len(items), desc=bar, unit="image", disable=bar is None)
