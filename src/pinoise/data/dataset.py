"""What every reader returns: samples, optional labels and a split, still in the units of the file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.choices import MANY_ROWS
from pinoise.data.lazy import Choice, ChosenRows, LazyArray, MappedRows
from pinoise.data.threads import in_threads

Samples = np.ndarray | sp.csr_array | LazyArray
"""Samples as rows: an array of shape (n, *shape), a sparse matrix of shape (n, d), or rows in files (images to decode,
an array that stays in its file) that become such an array when they are indexed."""

Labels = npt.NDArray[np.int64]
"""Class numbers from 0, one per row."""

Targets = Labels | npt.NDArray[np.float64]
"""What scores an embedding, one per row: class numbers, or the values of a measurement."""

CHUNK_VALUES = 1 << 22  # read at a time from a large array, so that a file is never loaded whole


HELD_VALUES = 1 << 26
"""Values of a table in a file up to which some of its rows are read into memory, when they are taken from it."""


class Origin(NamedTuple):
    """Which rows of their source some rows are, and how many the source has."""

    rows: npt.NDArray[np.int64] | Choice  # a choice of very many, which ``np.asarray`` lists
    total: int


@dataclass(frozen=True)
class Part:
    """The rows of one side of a split.

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

    def take(self, rows: npt.NDArray[np.int64]) -> Part:
        """Return the given rows, in the given order; images in files are not read into memory."""
        numbers = rows if rows.dtype == np.int64 and rows.min(initial=0) >= 0 else np.arange(len(self))[rows]
        return Part(
            x=_take(self.x, rows),
            y=None if self.y is None else _wide(self.y[rows]),
            groups=None if self.groups is None else _wide(self.groups[rows]),
            names=None if self.names is None else tuple(self.names[row] for row in numbers.tolist()),
            origin=Origin(numbers, len(self))
            if self.origin is None
            else self.origin._replace(rows=self.origin.rows[rows]),
        )

    def chosen(self, choice: npt.NDArray[np.bool_]) -> Part:
        """Return the rows of a table where ``choice`` is true, in order. Very many rows are not listed."""
        if not isinstance(self.x, LazyArray) or self.names is not None or self.origin is not None:
            return self.take(np.flatnonzero(choice))
        bits = Choice(choice)
        return Part(
            x=ChosenRows(self.x, bits),
            y=None if self.y is None else self.y[choice],
            groups=None if self.groups is None else self.groups[choice],
            origin=Origin(bits, len(self)),
        )


def _wide(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return few whole numbers in the type that every scorer knows; very many stay in the one they are kept in."""
    few = len(numbers) <= MANY_ROWS and numbers.dtype.kind in "iu"
    return numbers.astype(np.int64, copy=False) if few else numbers


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
        random = np.random.default_rng(0)
        many = n > MANY_ROWS and rows <= MANY_ROWS  # of which no list is made
        chosen = np.sort(random.choice(n, rows, replace=False) if many else random.permutation(n)[:rows])
        return replace(self, train=self.train.take(chosen))


def is_measured(y: Targets | None) -> bool:
    """Whether labels are the values of a measurement: those of classes are whole numbers by type.

    >>> is_measured(np.array([0.5, 2.0])), is_measured(np.array([0, 2])), is_measured(None)
    (True, False, False)
    """
    return y is not None and y.dtype.kind == "f"


def _take(x: Samples, rows: npt.NDArray[np.int64]) -> Samples:
    if isinstance(x, LazyArray) and (x.ndim > 2 or len(x) * x.shape[1] > HELD_VALUES):
        return x.take(rows)
    if x.ndim == 2:  # a table that is small beside images, and is standardised into a copy anyway
        return x[rows]
    return MappedRows(x, rows) if isinstance(x, np.memmap) else x[rows]


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
    files = x.file_checksums() if isinstance(x, LazyArray) else None
    for checksum in _chunk_checksums(x) if files is None else files:
        digest.update(checksum)
    return digest.hexdigest()


def _chunk_checksums(x: Samples) -> Iterator[bytes]:
    arrays: list[npt.NDArray[Any] | LazyArray] = [x.data, x.indices, x.indptr] if isinstance(x, sp.csr_array) else [x]

    def checksum(chunk: tuple[npt.NDArray[Any] | LazyArray, slice]) -> bytes:
        values, rows = chunk
        return hashlib.sha256(np.ascontiguousarray(values[rows]).data).digest()

    yield from in_threads(checksum, [(array, rows) for array in arrays for rows in row_slices(array)])
