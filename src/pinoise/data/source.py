"""From what a user names, a data set of the catalogue or a file, to samples."""

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
from pinoise.data.preparation.kinds import Preparation
from pinoise.data.preparation.tables import MissingPolicy
from pinoise.data.readers import read_file
from pinoise.data.wording import counted
from pinoise.errors import UserError, unknown_choice

_FINGERPRINT_ROWS = 1000


def open_source(
    source: str,
    *,
    label: str | None = None,
    missing: MissingPolicy = "median",
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    rows: int | None = None,
    progress: bool = False,
) -> tuple[Dataset, Preparation | None]:
    """Return the data set of that name or file, with at most ``rows`` training rows, and how to read files like it.

    >>> data, preparation = open_source("digits", rows=100)
    >>> len(data.train), data.shape, preparation is None
    (100, (64,), True)
    """
    preparation: Preparation | None = None
    if is_name(source):
        if label is not None:
            raise UserError(f"--label {label!r} is for files: the labels of {source!r} are known.")
        data = load(source, progress=progress)
    elif Path(source).exists() or Path(source).suffix or "/" in source or os.sep in source:
        data, preparation = read_file(source, label=label, missing=missing, categorical=categorical, drop=drop)
    else:
        raise unknown_choice("data set", source, [entry.name for entry in entries()])
    if len(data.train) < 2:
        raise UserError(f"{source} has {counted(len(data.train), 'row')}: learning by contrast needs at least 2.")
    if not varies(data.train.x):
        raise UserError(f"all {len(data.train)} rows of {source} are the same: there is nothing to learn from.")
    if rows is not None and rows < 2:
        raise UserError(f"rows is {rows}: learning by contrast needs at least 2.")
    return (data if rows is None else data.head(rows)), preparation


def is_name(source: str) -> bool:
    """Whether this names a data set of the catalogue.

    >>> is_name("digits"), is_name("my.csv")
    (True, False)
    """
    return any(entry.name == source for entry in entries())


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
