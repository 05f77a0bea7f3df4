"""The data sets that can be had by name, and what is known about each before it is read."""

from __future__ import annotations

from pathlib import Path

from pinoise.data.catalogue.conversions import converted
from pinoise.data.catalogue.fetch import DataFile, cache_folder, find, obtain
from pinoise.data.catalogue.publishers import (
    bundled,
    cifar,
    collection,
    epsilon,
    fashion_mnist,
    har,
    mslr,
    reuters10k,
    reuters21578,
    stl10,
    tiny_imagenet,
)
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.catalogue.unpacking import unpacked
from pinoise.data.dataset import Dataset
from pinoise.errors import unknown_choice

DEFAULT = "digits"
"""The set that needs no file."""

_ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for module in (
        bundled,
        har,
        reuters10k,
        reuters21578,
        epsilon,
        mslr,
        fashion_mnist,
        cifar,
        stl10,
        collection,
        tiny_imagenet,
    )
    for entry in module.ENTRIES
}


def entries() -> tuple[Entry, ...]:
    """Return every entry, those that need no file first.

    >>> [entry.name for entry in entries()][:4]
    ['digits', 'wine', 'breast_cancer', 'har']
    """
    return tuple(_ENTRIES.values())


def entry(name: str) -> Entry:
    """Return the entry of one data set.

    >>> entry("har").shape, entry("har").rows
    ((561,), (7352, 2947))
    """
    if name not in _ENTRIES:
        raise unknown_choice("data set", name, _ENTRIES)
    return _ENTRIES[name]


def locate(name: str, *, cache: Path | None = None) -> dict[str, Path | None]:
    """Return where each file of a data set is on this machine, None for one that is not; nothing is read.

    A set that needs no file has an empty answer, so ``all(locate(name).values())`` tells whether it can be loaded
    without a download.

    >>> locate("digits")
    {}
    """
    found = {file.name: find(file, cache=cache) for file in _files(entry(name), cache)}
    return {file: None if at is None else at[1] for file, at in found.items()}


def load(name: str, *, cache: Path | None = None, progress: bool = False, download: bool = True) -> Dataset:
    """Find, or download, and read a data set.

    Files come from the folder ``PINOISE_DATA``, else from the cache (``cache``, else ``PINOISE_CACHE``, else the
    platform's), else from Debian's folder of data sets, else from their publisher unless ``download`` is false;
    ``progress`` shows a bar meanwhile. A set that must be parsed is kept converted in the cache for the next time, and
    one that is mapped is unpacked there.

    >>> data = load("digits")
    >>> len(data.train), len(data.test), data.shape, data.n_classes
    (1437, 360, (64,), 10)
    """
    chosen = entry(name)
    folder = cache or cache_folder()
    files = [obtain(file, cache=folder, progress=progress, download=download) for file in _files(chosen, folder)]
    paths = [path for path, _ in files]
    if chosen.unpacked:
        paths = [path if path.is_dir() else unpacked(path, chosen.unpacked, cache=folder) for path in paths]
    if not chosen.parsed:
        return chosen.reader(paths)
    return converted(name, files, lambda: chosen.reader(paths), cache=folder)


def _files(chosen: Entry, cache: Path | None) -> tuple[DataFile, ...]:
    """Return the files to read: the prepared one where it is on this machine, else the publisher's."""
    prepared = chosen.prepared
    return chosen.files if prepared is None or find(prepared, cache=cache) is None else (prepared,)
