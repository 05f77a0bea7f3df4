"""Loading a data set of the catalogue: find or download its files, read them, keep what took long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pinoise.data.catalogue.conversions import converted
from pinoise.data.catalogue.facts import Entry, entry
from pinoise.data.catalogue.fetch import obtain
from pinoise.data.catalogue.publishers.arrays import (
    read_bundled,
    read_cifar_set,
    read_fashion_mnist,
    read_npz_set,
    read_stl10_labelled,
    read_stl10_unlabelled_set,
    read_tiny_imagenet,
)
from pinoise.data.catalogue.publishers.har import read_har
from pinoise.data.catalogue.publishers.reuters10k import read_reuters10k
from pinoise.data.catalogue.publishers.reuters21578 import read_reuters21578
from pinoise.data.catalogue.publishers.svmlight import read_epsilon, read_mslr, read_mslr_text
from pinoise.data.catalogue.unpacking import unpacked
from pinoise.data.dataset import Dataset
from pinoise.files import cache_folder

READERS: dict[str, Callable[[Entry, Sequence[Path]], Dataset]] = {
    "scikit-learn": read_bundled,
    "npz": read_npz_set,
    "fashion-mnist": read_fashion_mnist,
    "cifar": read_cifar_set,
    "stl10": read_stl10_labelled,
    "stl10-unlabelled": read_stl10_unlabelled_set,
    "tiny-imagenet": read_tiny_imagenet,
    "har": read_har,
    "reuters10k": read_reuters10k,
    "reuters21578": read_reuters21578,
    "epsilon": read_epsilon,
    "mslr": read_mslr,
    "mslr-text": read_mslr_text,
}
"""By the name that ``Entry.reader`` has: from an entry and the paths of its files, in their order, to the data."""


def load(name: str, *, cache: Path | None = None, progress: bool = False, download: bool = True) -> Dataset:
    """Find, or download, and read a data set.

    Files come from the folder ``PINOISE_DATA``, else from the cache (``cache``, else ``PINOISE_CACHE``, else the
    platform's), else from Debian's folder of data sets, else from their publisher unless ``download`` is false;
    ``progress`` shows a bar meanwhile. A set that takes long to parse is kept converted in the cache for the next
    time, and one that is mapped is unpacked there.

    >>> data = load("digits")
    >>> len(data.train), len(data.test), data.shape, data.n_classes
    (1437, 360, (64,), 10)
    """
    chosen = entry(name)
    folder = cache or cache_folder()
    files = [obtain(file, cache=folder, progress=progress, download=download) for file in chosen.files_here(folder)]
    paths = [path for path, _ in files]
    if chosen.unpack:
        paths = [path if path.is_dir() else unpacked(path, chosen.unpack, cache=folder) for path in paths]
    reader = READERS[chosen.reader]
    if not chosen.convert:
        return reader(chosen, paths)
    return converted(name, files, lambda: reader(chosen, paths), cache=folder)
