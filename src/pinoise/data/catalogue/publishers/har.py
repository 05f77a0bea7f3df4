"""Human Activity Recognition Using Smartphones, as the UCI repository publishes it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import Archive, open_inner, open_member
from pinoise.errors import UserError

_INNER = "UCI HAR Dataset.zip"


def read_har(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read the 561 features from the repository's zip, or from the zip of the same data within it."""
    (path,) = paths
    source, label = open_inner(path, _INNER)
    features = _names(source, "features.txt", label)
    activities = _names(source, "activity_labels.txt", label)
    return Dataset(
        entry.name,
        train=_part(source, "train", label, features=len(features), classes=len(activities)),
        test=_part(source, "test", label, features=len(features), classes=len(activities)),
        feature_names=features,
        class_names=activities,
    )


def _part(source: Archive, side: str, label: str, *, features: int, classes: int) -> Part:
    x = _numbers(source, f"{side}/X_{side}.txt", label, columns=features)
    y = _numbers(source, f"{side}/y_{side}.txt", label, columns=1)[:, 0].astype(np.int64) - 1
    subjects = _numbers(source, f"{side}/subject_{side}.txt", label, columns=1)[:, 0].astype(np.int64)
    if not len(x) == len(y) == len(subjects):
        raise UserError(
            f"{label} has {len(x)} rows, {len(y)} labels and {len(subjects)} subjects in {side!r}: "
            "their numbers must be equal."
        )
    if y.size and (y.min() < 0 or y.max() >= classes):
        raise UserError(f"{label} has labels {y.min() + 1} to {y.max() + 1} in {side!r}: allowed are 1 to {classes}.")
    return Part(x, y, subjects)


def _numbers(source: Archive, member: str, label: str, *, columns: int) -> npt.NDArray[np.float32]:
    with open_member(source, f"UCI HAR Dataset/{member}", label=label) as stream:
        try:
            table = np.loadtxt(io.TextIOWrapper(stream, encoding="ascii"), dtype=np.float32, ndmin=2)
        except UserError:
            raise
        except ValueError as error:
            raise UserError(f"{label}, {member}: {error}.") from error
    if table.shape[1] != columns:
        raise UserError(f"{label}, {member}: {table.shape[1]} columns were found instead of {columns}.")
    return table


def _names(source: Archive, member: str, label: str) -> tuple[str, ...]:
    """Return the second words of lines such as ``1 WALKING``."""
    with open_member(source, f"UCI HAR Dataset/{member}", label=label) as stream:
        lines = stream.read().decode("ascii", errors="replace").splitlines()
    names = tuple(line.split(maxsplit=1)[-1].strip() for line in lines if line.strip())
    if not names:
        raise UserError(f"{label}, {member}: no name was found.")
    return names
