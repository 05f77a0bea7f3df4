"""Large sets in svmlight's text: Epsilon of LIBSVM's collection, and MSLR-WEB30K of Microsoft Research."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import GIB, open_compressed, open_member
from pinoise.data.formats.raw import Array, RawPart
from pinoise.data.formats.svmlight import parse_svmlight
from pinoise.errors import UserError


def read_epsilon(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read the training and the test file, plain or compressed by gzip or bzip2; labels −1 and 1 become 0 and 1."""
    train, test = (_signed(entry, path) for path in paths)
    return Dataset(entry.name, train, test, class_names=("-1", "1"))


def read_mslr(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read the first fold from the publisher's zip; its validation part is left out."""
    (path,) = paths
    train, test = (
        _judged(entry, open_member(path, member, limit=16 * GIB), f"{path}: {member}")
        for member in ("Fold1/train.txt", "Fold1/test.txt")
    )
    return Dataset(entry.name, train, test, notes=("Fold1/vali.txt of the publisher is left out",))


def read_mslr_text(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read a training and a test file of the publisher's text, plain or compressed."""
    train, test = (_judged(entry, open_compressed(path), str(path)) for path in paths)
    return Dataset(entry.name, train, test)


def _signed(entry: Entry, path: Path) -> Part:
    raw, y = _parsed(entry, open_compressed(path, limit=32 * GIB), str(path))
    _check_labels(y, np.abs(y) == 1, where=str(path), what="label", allowed="-1 and 1")
    return Part(raw.x, (y > 0).astype(np.int64))


def _judged(entry: Entry, opened: AbstractContextManager[BinaryIO], where: str) -> Part:
    """Return web pages judged for queries, with grades from 0."""
    raw, y = _parsed(entry, opened, where)
    if raw.groups is None:
        raise UserError(f"{where}: every row needs a query, written as qid:number.")
    grades = np.arange(entry.classes)
    _check_labels(y, np.isin(y, grades), where=where, what="grade", allowed=f"0 to {grades[-1]}")
    return Part(raw.x, y.astype(np.int64), raw.groups)


def _parsed(entry: Entry, opened: AbstractContextManager[BinaryIO], where: str) -> tuple[RawPart, Array]:
    """Return dense rows, and their labels as the file has them."""
    with opened as stream:
        raw = parse_svmlight(stream, where=where, n_features=entry.shape[0], first_index=1, dense=True).train
    return raw, np.asarray(raw.y)


def _check_labels(y: Array, good: Array, *, where: str, what: str, allowed: str) -> None:
    wrong = np.flatnonzero(~good)
    if wrong.size:
        row = int(wrong[0])
        raise UserError(f"{where}, row {row + 1}: the {what} {y[row]:g} was found; allowed are {allowed}.")
