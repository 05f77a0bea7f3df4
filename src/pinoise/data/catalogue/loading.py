"""Loading a data set of the catalogue: find or download its files, read them, keep what took long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pinoise.data.catalogue.cache import converted, unpacked
from pinoise.data.catalogue.facts import entry
from pinoise.data.catalogue.fetch import obtain
from pinoise.data.catalogue.publishers import arrays, har, reuters10k, reuters21578, svmlight
from pinoise.data.dataset import Dataset
from pinoise.data.formats.arrays import read_npz
from pinoise.data.formats.cifar import read_cifar
from pinoise.data.formats.stl10 import read_stl10, read_stl10_all, read_stl10_unlabelled
from pinoise.data.images.reading import resized
from pinoise.files import cache_folder

READERS: dict[str, arrays.SetReader] = {
    "scikit-learn": arrays.read_bundled,
    "npz": arrays.array_reader(read_npz),
    "fashion-mnist": arrays.read_fashion_mnist,
    "cifar": arrays.array_reader(read_cifar),
    "stl10": arrays.array_reader(read_stl10),
    "stl10-unlabelled": arrays.array_reader(read_stl10_unlabelled),
    "stl10-all": arrays.array_reader(read_stl10_all),
    "class-folders": arrays.read_class_folders,
    "tiny-imagenet": arrays.read_tiny_imagenet,
    "har": har.read_har,
    "reuters10k": reuters10k.read_reuters10k,
    "reuters21578": reuters21578.read_reuters21578,
    "epsilon": svmlight.read_epsilon,
    "mslr": svmlight.read_mslr,
    "mslr-text": svmlight.read_mslr_text,
}
"""By the name that ``Entry.reader`` has."""


def load(
    name: str,
    *,
    size: tuple[int, int] | None = None,
    cache: Path | None = None,
    progress: bool = False,
    download: bool = True,
) -> Dataset:
    """Find, or download, and read a data set.

    Files come from the folder ``PINOISE_DATA``, else from the cache (``cache``, else ``PINOISE_CACHE``, else the
    platform's), else from Debian's folder of data sets, else from their publisher unless ``download`` is false;
    ``progress`` shows a bar meanwhile. A set that takes long to parse is kept converted in the cache for the next
    time, and one of which rows are read from files is unpacked there. ``size`` is the height and width that images are
    brought to; their own if None.

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
    if size is not None and reader is arrays.read_class_folders:  # files are decoded at once in the size asked for
        chosen = replace(chosen, shape=(*size, *chosen.shape[2:]))
    if chosen.convert:
        data = converted(name, files, lambda: reader(chosen, paths), cache=folder)
    else:
        data = reader(chosen, paths)
    return data if size is None else resized(data, size)
