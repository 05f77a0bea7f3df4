"""STL-10 in its binary version: files of pixels that are never read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pinoise.data.formats.raw import RawArrays, RawPart
from pinoise.data.lazy import FileRows, JoinedRows
from pinoise.data.messages import cannot_read, counted, whole_rows
from pinoise.errors import UserError
from pinoise.files import open_regular

_IMAGE = 3 * 96 * 96  # bytes


def holds_stl10(folder: Path) -> bool:
    """Whether a folder holds the labelled training images of STL-10."""
    return (folder / "train_X.bin").is_file()


def read_stl10(folder: Path) -> RawArrays:
    """Read the labelled images of an unpacked folder, 96 × 96 × 3; labels count from 1 in the files and from 0 here."""
    names = folder / "class_names.txt"
    words = names.read_text(encoding="utf-8", errors="replace").split("\n") if names.is_file() else []
    return RawArrays(
        train=_part(folder, "train"),
        test=_part(folder, "test") if (folder / "test_X.bin").is_file() else None,
        class_names=tuple(word.strip() for word in words if word.strip()) or None,
    )


def read_stl10_unlabelled(folder: Path) -> RawArrays:
    """Read the unlabelled images of an unpacked folder as rows to train on."""
    note = "the labelled images are not among these: they are the set stl10"
    return RawArrays(RawPart(read_stl10_images(folder / "unlabeled_X.bin")), notes=(note,))


def read_stl10_all(folder: Path) -> RawArrays:
    """Read the labelled training images and then the unlabelled ones, as rows to train on without labels."""
    images = [read_stl10_images(folder / f"{side}_X.bin") for side in ("train", "unlabeled")]
    note = "labels are not read: score on the set stl10, whose test images are not among these"
    return RawArrays(RawPart(JoinedRows(images)), notes=(note,))


def read_stl10_images(path: Path) -> FileRows:
    """Open a file of images as (n, 96, 96, 3); in the file each channel is stored column by column."""
    rows = whole_rows(_size(path), _IMAGE, where=path, noun="images")
    return FileRows(path, (rows, 3, 96, 96), np.dtype(np.uint8), axes=(0, 3, 2, 1))  # channel, column, row


def _part(folder: Path, side: str) -> RawPart:
    x = read_stl10_images(folder / f"{side}_X.bin")
    path = folder / f"{side}_y.bin"
    try:
        with open_regular(path) as stream:
            y = np.frombuffer(stream.read(), np.uint8)
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(y) != len(x):
        raise UserError(
            f"{path} has {counted(len(y), 'label')}, but there are {counted(len(x), 'image')}: a file is cut off."
        )
    if y.min() < 1:
        raise UserError(f"{path} has a label of 0 in row {int(y.argmin())} (counted from 0): labels count from 1.")
    return RawPart(x, y - 1)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise cannot_read(path, error) from error
