"""From what a user names, a data set of the catalogue, a file or a folder, to samples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from pinoise.data.catalogue import entries, load
from pinoise.data.checks import varies
from pinoise.data.dataset import Dataset, Samples
from pinoise.data.images.options import Color, Corrupt, ImageSize, refuse_image_options
from pinoise.data.preparation.kinds import Preparation
from pinoise.data.preparation.tables import MissingPolicy
from pinoise.data.readers import read_file
from pinoise.data.splitting import split
from pinoise.errors import UserError, unknown_choice

_FINGERPRINT_ROWS = 1000


def open_source(
    source: str,
    *,
    label: str | None = None,
    missing: MissingPolicy = "median",
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    size: ImageSize | None = None,
    color: Color = "auto",
    corrupt: Corrupt = "refuse",
    cache: str | Path | None = None,
    rows: int | None = None,
    progress: bool = False,
) -> tuple[Dataset, Preparation | None]:
    """Return the data set of that name, file or folder, with at most ``rows`` training rows, and how to read more.

    The options are those of ``read_file``.

    >>> data, preparation = open_source("digits", rows=100)
    >>> len(data.train), data.shape, preparation is None
    (100, (64,), True)
    """
    preparation: Preparation | None = None
    if is_name(source):
        if label is not None:
            raise UserError(f"--label {label!r} is for files: the labels of {source!r} are known.")
        refuse_image_options(size, color, corrupt, cache, where=f"the data set {source!r}")
        data = load(source, progress=progress)
    elif Path(source).exists() or Path(source).suffix or "/" in source or os.sep in source:
        data, preparation = read_file(
            source,
            label=label,
            missing=missing,
            categorical=categorical,
            drop=drop,
            size=size,
            color=color,
            corrupt=corrupt,
            cache=cache,
            progress=progress,
        )
    else:
        raise unknown_choice("data set", source, [entry.name for entry in entries()])
    _check_learnable(data, source, "rows")
    if rows is not None and rows < 2:
        raise UserError(f"rows is {rows}: learning by contrast needs at least 2.")
    return (data if rows is None else data.draw(rows)), preparation


def open_for_training(
    source: str,
    *,
    label: str | None = None,
    missing: MissingPolicy = "median",
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    size: ImageSize | None = None,
    color: Color = "auto",
    corrupt: Corrupt = "refuse",
    cache: str | Path | None = None,
    rows: int | None = None,
    progress: bool = False,
) -> tuple[Dataset, Preparation | None]:
    """Open a source as ``open_source`` does, with test rows that training must not see.

    A source with labels and without a test part is split, always in the same way, so that a later evaluation has
    rows that the encoder does not know. ``rows`` limits what is left to train on. A source without labels cannot be
    scored and is used whole.

    >>> data, _ = open_for_training("digits", rows=100)
    >>> len(data.train), len(data.test)
    (100, 360)
    """
    data, preparation = open_source(
        source,
        label=label,
        missing=missing,
        categorical=categorical,
        drop=drop,
        size=size,
        color=color,
        corrupt=corrupt,
        cache=cache,
        progress=progress,
    )
    if data.test is None and data.train.y is not None:
        data = split(data)
        _check_learnable(data, source, "rows left to train on")
    return (data if rows is None else data.draw(rows)), preparation


def _check_learnable(data: Dataset, source: str, what: str) -> None:
    n = len(data.train)
    if n < 2:
        what = what.replace("rows", "row", 1)
        raise UserError(f"{source} has {n} {what}: learning by contrast needs at least 2.")
    if not varies(data.train.x):
        raise UserError(f"all {n} {what} of {source} are the same: there is nothing to learn from.")


def is_name(source: str) -> bool:
    """Whether this names a data set of the catalogue.

    >>> is_name("digits"), is_name("my.csv")
    (True, False)
    """
    return any(entry.name == source for entry in entries())


def fingerprint_parts(data: Dataset) -> str:
    """Return a checksum of the training part and of the test part where there is one, as ``fingerprint`` makes it.

    >>> data = load("wine")
    >>> fingerprint_parts(data) == fingerprint_parts(data), fingerprint_parts(data) == fingerprint_parts(data.draw(50))
    (True, False)
    """
    parts = [data.train.x] if data.test is None else [data.train.x, data.test.x]
    return hashlib.sha256("".join(map(fingerprint, parts)).encode()).hexdigest()


def fingerprint(x: Samples) -> str:
    """Return a checksum of the shape and of up to 1,000 evenly spaced rows, to notice that data has changed.

    >>> zeros = np.zeros((3, 2))
    >>> fingerprint(zeros) == fingerprint(zeros.copy()), fingerprint(zeros) == fingerprint(zeros + 1)
    (True, False)
    """
    digest = hashlib.sha256(repr((x.shape, str(x.dtype))).encode())
    rows = np.unique(np.linspace(0, x.shape[0] - 1, _FINGERPRINT_ROWS).astype(np.int64))
    sample = x[rows]
    for array in (sample.data, sample.indices, sample.indptr) if isinstance(sample, sp.csr_array) else (sample,):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
