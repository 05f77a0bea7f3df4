"""Sets that are published as text: UCI HAR's tables, and Epsilon and MSLR-WEB30K in svmlight's format."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import RawArrays, RawPart
from pinoise.data.formats.archives import GIB, Archive, open_compressed, open_inner, open_member
from pinoise.data.formats.svmlight import parse_svmlight
from pinoise.data.messages import damage_named


def read_har(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read UCI HAR's 561 features from the repository's zip, or from the zip of the same data within it."""
    (path,) = paths
    source, label = open_inner(path, "UCI HAR Dataset.zip")
    return RawArrays(
        _har_part(source, "train", label),
        _har_part(source, "test", label),
        feature_names=_har_names(source, "features.txt", label),
        class_names=_har_names(source, "activity_labels.txt", label),
    )


def _har_part(source: Archive, side: str, label: str) -> RawPart:
    x, y, subjects = (_har_table(source, f"{side}/{what}_{side}.txt", label) for what in ("X", "y", "subject"))
    return RawPart(x, y[:, 0].astype(np.int64) - 1, subjects[:, 0].astype(np.int64))


def _har_table(source: Archive, member: str, label: str) -> npt.NDArray[np.float32]:
    with (
        open_member(source, f"UCI HAR Dataset/{member}", label=label) as stream,
        damage_named(f"{label}, {member}", ValueError),
    ):
        return np.loadtxt(io.TextIOWrapper(stream, encoding="ascii"), dtype=np.float32, ndmin=2)


def _har_names(source: Archive, member: str, label: str) -> tuple[str, ...]:
    """Return the second words of lines such as ``1 WALKING``."""
    with open_member(source, f"UCI HAR Dataset/{member}", label=label) as stream:
        lines = stream.read().decode("ascii", errors="replace").splitlines()
    return tuple(line.split(maxsplit=1)[-1].strip() for line in lines if line.strip())


def read_svmlight_files(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read a training and a test file in svmlight's format, plain or compressed by gzip or bzip2, as dense rows."""
    train, test = (_dense(entry, open_compressed(path, limit=32 * GIB), str(path)) for path in paths)
    return RawArrays(train, test)


def read_mslr(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read the first fold from the publisher's zip: web pages judged for queries. Its validation part is left out."""
    (path,) = paths
    train, test = (
        _dense(entry, open_member(path, f"Fold1/{side}.txt", limit=16 * GIB), f"{path}: Fold1/{side}.txt")
        for side in ("train", "test")
    )
    return RawArrays(train, test, notes=("Fold1/vali.txt of the publisher is left out",))


def _dense(entry: Entry, opened: AbstractContextManager[BinaryIO], where: str) -> RawPart:
    with opened as stream:
        return parse_svmlight(stream, where=where, n_features=entry.shape[0], first_index=1, dense=True).train
