"""Folders that hold the files of a published set of images, told by the names of the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pinoise.data.formats.cifar import holds_cifar, read_cifar
from pinoise.data.formats.idx import holds_idx, read_idx_folder
from pinoise.data.formats.raw import RawArrays
from pinoise.data.formats.stl10 import holds_stl10, read_stl10


def published_reader(folder: Path) -> Callable[[Path], RawArrays] | None:
    """Return the reader of an unpacked MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 or STL-10; None for other folders."""
    if holds_idx(folder):
        return read_idx_folder
    if holds_cifar(folder):
        return read_cifar
    return read_stl10 if holds_stl10(folder) else None
