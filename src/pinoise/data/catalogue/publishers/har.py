"""Human Activity Recognition Using Smartphones, as the UCI repository publishes it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import has_member, open_member
from pinoise.errors import UserError

_INNER = "UCI HAR Dataset.zip"


def read_har(paths: Sequence[Path]) -> Dataset:
    """Read the 561 features from the repository's zip, or from the zip of the same data within it."""
    (path,) = paths
    source: Path | BinaryIO = path
    label = str(path)
    if has_member(path, _INNER):
        with open_member(path, _INNER) as stream:
            source = io.BytesIO(stream.read())
        label = f"{path}: {_INNER}"
    features = _names(source, "features.txt", label)
    activities = _names(source, "activity_labels.txt", label)
    return Dataset(
        "har",
        train=_part(source, "train", label, features=len(features), classes=len(activities)),
        test=_part(source, "test", label, features=len(features), classes=len(activities)),
        feature_names=features,
        class_names=activities,
    )


def _part(source: Path | BinaryIO, side: str, label: str, *, features: int, classes: int) -> Part:
    x = _numbers(source, f"{side}/X_{side}.txt", label, columns=features)
    y = _numbers(source, f"{side}/y_{side}.txt", label, columns=1)[:, 0].astype(np.int64) - 1
    subjects = _numbers(source, f"{side}/subject_{side}.txt", label, columns=1)[:, 0].astype(np.int64)
    if not len(x) == len(y) == len(subjects):
        raise UserError(
            f"{label} has {len(x)} rows, {len(y)} labels and {len(subjects)} subjects in {side!r}: "
            "they must be as many."
        )
    if y.size and (y.min() < 0 or y.max() >= classes):
        raise UserError(f"{label} has labels {y.min() + 1} to {y.max() + 1} in {side!r}: allowed are 1 to {classes}.")
    return Part(x, y, subjects)


def _numbers(source: Path | BinaryIO, member: str, label: str, *, columns: int) -> npt.NDArray[np.float32]:
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


def _names(source: Path | BinaryIO, member: str, label: str) -> tuple[str, ...]:
    """Return the second words of lines such as ``1 WALKING``."""
    with open_member(source, f"UCI HAR Dataset/{member}", label=label) as stream:
        lines = stream.read().decode("ascii", errors="replace").splitlines()
    names = tuple(line.split(maxsplit=1)[-1].strip() for line in lines if line.strip())
    if not names:
        raise UserError(f"{label}, {member}: no name was found.")
    return names


ENTRIES = (
    Entry(
        name="har",
        title="UCI HAR: 561 features of smartphone motion, six activities of 30 people",
        shape=(561,),
        classes=6,
        rows=(7352, 2947),
        split="the publisher's, by subject: 21 people to train on, 9 others to test on",
        licence="CC BY 4.0",
        source="https://archive.ics.uci.edu/dataset/240",
        reader=read_har,
        files=(
            DataFile(
                "human+activity+recognition+using+smartphones.zip",
                sha256="c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
                url="https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",
                instead=(
                    DataFile(
                        _INNER,
                        sha256="2045e435c955214b38145fb5fa00776c72814f01b203fec405152dac7d5bfeb0",
                    ),
                ),
            ),
        ),
    ),
)
