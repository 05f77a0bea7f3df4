"""Loading a data set of the catalogue: find or download its files, read them, keep what took long."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from pinoise.data.arrays import learn_arrays
from pinoise.data.catalogue.cache import converted, unpacked
from pinoise.data.catalogue.facts import Entry, entry
from pinoise.data.catalogue.fetch import obtain
from pinoise.data.catalogue.reuters import read_reuters10k, read_reuters21578
from pinoise.data.catalogue.texts import read_har, read_mslr, read_svmlight_files
from pinoise.data.dataset import Array, Dataset, RawArrays, RawPart
from pinoise.data.formats.arrays import open_npz, read_npz
from pinoise.data.formats.binary import read_cifar, read_idx, read_stl10, read_stl10_all, read_stl10_unlabelled
from pinoise.data.images.decoding import pillow
from pinoise.data.images.reading import read_image_folder, resized
from pinoise.data.options import ReadOptions
from pinoise.data.splitting import split
from pinoise.errors import UserError
from pinoise.files import cache_folder

SetReader = Callable[[Entry, Sequence[Path]], RawArrays]
"""From an entry of the catalogue and the paths of its files, in their order, to what they hold."""


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
    if size is not None and chosen.reader == "class-folders":  # files are decoded at once in the size asked for
        chosen = replace(chosen, shape=(*size, *chosen.shape[2:]))
    read = partial(read_set, chosen, paths)
    data = converted(name, files, read, cache=folder) if chosen.convert else read()
    return data if size is None else resized(data, size)


def read_set(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read a set from its files, with class numbers; one that its publisher did not split is split here."""
    raw = READERS[entry.reader](entry, paths)
    named = replace(raw, class_names=raw.class_names or entry.class_names)
    data, _ = learn_arrays(named, name=entry.name, where=str(paths[0]) if paths else entry.name)
    return split(data) if entry.rows[1] else data


def _read_bundled(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Return the set of this name that comes with scikit-learn."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{entry.name}")()
    return RawArrays(
        RawPart(np.asarray(bunch.data, dtype=np.float32), np.asarray(bunch.target)),
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, bunch.target_names)),
    )


def _read_fashion_mnist(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read training images and labels and test images and labels, or the one file that has all four."""
    if len(paths) == 1:
        return read_npz(*paths)
    x_train, y_train, x_test, y_test = map(read_idx, paths)
    return RawArrays(RawPart(x_train, y_train), RawPart(x_test, y_test))


def _read_class_folders(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read the folders train and val of a folder, each with one folder per class, at the entry's height and width."""
    (path,) = paths
    height, width, _ = entry.shape
    raw = read_image_folder(path, ReadOptions(size=(height, width), color="rgb"))
    if raw.test is None or raw.train.y is None:
        raise UserError(
            f"{path} is not a folder with train and val, each with one folder for every class: sort the images so, as "
            "the publisher's lists of classes say."
        )
    return raw


def _read_tiny_imagenet(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Decode JPEG files that are kept in one file of arrays; grayscale ones get three equal channels."""
    (path,) = paths
    with open_npz(path) as arrays:
        train, test = (_decoded(path, arrays, side, entry.shape) for side in ("train", "test"))
        names = tuple(map(str, arrays["class_names"]))
    return RawArrays(train, test, class_names=names, notes=("grayscale images have three equal channels",))


def _decoded(path: Path, arrays: Mapping[str, Array], side: str, shape: tuple[int, ...]) -> RawPart:
    library = pillow()
    content = arrays[f"{side}_bytes"].tobytes()
    offsets = arrays[f"{side}_offsets"].tolist()
    images = np.empty((len(offsets) - 1, *shape), dtype=np.uint8)
    for row, (start, end) in enumerate(pairwise(offsets)):
        try:
            with library.open(io.BytesIO(content[start:end]), formats=("JPEG",)) as image:
                images[row] = image.convert("RGB")
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise errors of every kind for damaged files
            raise UserError(f"{path}, {side} image {row}: it cannot be decoded as JPEG of shape {shape}.") from error
    return RawPart(images, arrays[f"y_{side}"])


def _alone(read: Callable[[Path], RawArrays]) -> SetReader:
    """Return the reader of a set in one file or folder."""
    return lambda entry, paths: read(*paths)


READERS: dict[str, SetReader] = {
    "scikit-learn": _read_bundled,
    "npz": _alone(read_npz),
    "fashion-mnist": _read_fashion_mnist,
    "cifar": _alone(read_cifar),
    "stl10": _alone(read_stl10),
    "stl10-unlabelled": _alone(read_stl10_unlabelled),
    "stl10-all": _alone(read_stl10_all),
    "class-folders": _read_class_folders,
    "tiny-imagenet": _read_tiny_imagenet,
    "har": read_har,
    "reuters10k": read_reuters10k,
    "reuters21578": read_reuters21578,
    "mslr": read_mslr,
    "svmlight": read_svmlight_files,
}
"""By the name that ``Entry.reader`` has."""
