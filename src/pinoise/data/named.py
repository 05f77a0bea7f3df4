"""Data sets by name, and the formats in which well-known ones are published, by the import paths in ``choices``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pinoise.choices import CATALOGUE, FORMATS, imported
from pinoise.data.dataset import Dataset, RawArrays

ArrayReader = Callable[[Path], RawArrays]


def entries() -> tuple[Any, ...]:
    """Return what is known of every set, those that need no file first.

    >>> [entry.name for entry in entries()][:4]
    ['digits', 'wine', 'breast_cancer', 'har']
    """
    return tuple(imported(CATALOGUE["entries"])())


def is_name(source: object) -> bool:
    """Whether this names a data set.

    >>> is_name("digits"), is_name("my.csv")
    (True, False)
    """
    return isinstance(source, str) and any(source == entry.name for entry in entries())


def locate(name: str) -> dict[str, Path | None]:
    """Return where each file of a data set is on this machine, None for one that is not; nothing is read.

    >>> locate("digits")
    {}
    """
    return dict(imported(CATALOGUE["locate"])(name))


def load(
    name: str,
    *,
    size: tuple[int, int] | None = None,
    cache: Path | None = None,
    progress: bool = False,
    download: bool = True,
) -> Dataset:
    """Find, or download, and read a data set.

    Args:
        name: of the data set; ``pinoise datasets`` lists them.
        size: the height and width that images are brought to; their own if None.
        cache: the folder for downloads; ``PINOISE_CACHE``, else the platform's, if None.
        progress: whether a download shows a bar.
        download: whether files that are not on this machine are downloaded.

    >>> data = load("digits")
    >>> len(data.train), len(data.test), data.shape, data.n_classes
    (1437, 360, (64,), 10)
    """
    data: Dataset = imported(CATALOGUE["load"])(name, size=size, cache=cache, progress=progress, download=download)
    return data


def published_reader(folder: Path) -> ArrayReader | None:
    """Return the reader of an unpacked MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 or STL-10; None for other folders."""
    formats = (imported(where) for where in FORMATS.values())
    return next((found.read for found in formats if found.holds(folder)), None)


def read_idx(path: Path) -> RawArrays:
    """Read one file in the format of MNIST, with the labels of the file beside it if they are named as MNIST's are."""
    read: ArrayReader = imported(FORMATS["idx"]).read
    return read(path)
