"""Loading a data set of the catalogue: find or download its files, read them, keep what took long."""

from __future__ import annotations

import io
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from pinoise.data.arrays import learn_arrays
from pinoise.data.dataset import Array, Dataset, Part, RawArrays, split
from pinoise.data.disk import kept, place_of
from pinoise.data.formats.arrays import open_npz, read_npz
from pinoise.data.formats.opened import GIB, state_of
from pinoise.data.images.decoding import pillow
from pinoise.data.images.reading import read_image_folder, resized
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError
from pinoise.files import WriteError, cache_folder
from pinoise.paper.archives import open_member
from pinoise.paper.catalogue.facts import Entry, entry
from pinoise.paper.catalogue.fetch import obtain
from pinoise.paper.catalogue.texts import read_har, read_mslr, read_reuters10k, read_reuters21578, read_svmlight_files
from pinoise.paper.formats import read_cifar, read_idx, read_stl10, read_stl10_all, read_stl10_unlabelled

Sources = Iterable[tuple[Path, str | None]]
"""Files with their SHA-256, where it is known."""

VERSION = 4  # to be raised whenever a reader gives other values for the same files, or other files are kept of them


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


def converted(name: str, sources: Sources, read: Callable[[], Dataset], *, cache: Path) -> Dataset:
    """Return a set as it was kept when the same files were read before; else read and keep it."""
    try:
        folder, about = kept(cache / "converted" / name, _key(sources), lambda folder: _write(folder, read()))
    except WriteError as error:  # a cache is a convenience
        logging.getLogger(__name__).warning("the conversion of %s is not kept: %s", name, error)
        return read()
    arrays: dict[str, Any] = {file.stem: np.load(file) for file in folder.glob("*.npy")}
    arrays |= {file.stem: sp.load_npz(file) for file in folder.glob("*.npz")}
    train, test = (Part(arrays[f"{on}_x"], arrays[f"{on}_y"], arrays.get(f"{on}_groups")) for on in ("train", "test"))
    texts: dict[str, Any] = {key: None if value is None else tuple(value) for key, value in about.items()}
    return Dataset(name, train, test, **texts)


def _write(folder: Path, data: Dataset) -> dict[str, Any]:
    for side, part in (("train", data.train), ("test", data.test)):  # sets that are converted have both
        for what in ("x", "y", "groups"):
            values = getattr(part, what)
            save: Any = sp.save_npz if sp.issparse(values) else np.save
            if values is not None:
                save(folder / f"{side}_{what}", values)
    return {"feature_names": data.feature_names, "class_names": data.class_names, "notes": data.notes}


def unpacked(archive: Path, names: Sequence[str], *, cache: Path) -> Path:
    """Return the folder in the cache that holds these files of an archive; they are unpacked once."""

    def make(folder: Path) -> dict[str, Any]:
        for name in names:
            with open_member(archive, name, limit=8 * GIB) as stream, (folder / name).open("xb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
        return {}

    place = place_of("unpacked", archive.name.split(".")[0], list(names), folder=cache / "unpacked")
    return kept(place, _key([(archive, None)]), make).folder


def _key(sources: Sources) -> list[Any]:
    return [VERSION, [[path.name, sha256 or state_of(path)] for path, sha256 in sources]]


def read_set(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read a set from its files, with class numbers; one that its publisher did not split is split here."""
    raw = READERS[entry.reader](*paths) if entry.reader in READERS else SET_READERS[entry.reader](entry, *paths)
    named = replace(raw, class_names=raw.class_names or entry.class_names)
    data, _ = learn_arrays(named, name=entry.name, where=str(paths[0]) if paths else entry.name)
    return split(data) if entry.rows[1] else data


def _read_bundled(entry: Entry) -> RawArrays:
    """Return the set of this name that comes with scikit-learn."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{entry.name}")()
    return RawArrays(
        Part(np.asarray(bunch.data, dtype=np.float32), np.asarray(bunch.target)),
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, bunch.target_names)),
    )


def _read_fashion_mnist(*paths: Path) -> RawArrays:
    """Read training images and labels and test images and labels, or the one file that has all four."""
    if len(paths) == 1:
        return read_npz(*paths)
    x_train, y_train, x_test, y_test = map(read_idx, paths)
    return RawArrays(Part(x_train, y_train), Part(x_test, y_test))


def _read_class_folders(entry: Entry, path: Path) -> RawArrays:
    """Read the folders train and val of a folder, each with one folder per class, at the entry's height and width."""
    height, width, _ = entry.shape
    raw = read_image_folder(path, ReadOptions(size=(height, width), color="rgb"))
    if raw.test is None or raw.train.y is None:
        raise UserError(f"{path} is not a folder with train and val, each with one folder for every class: sort it so.")
    return raw


def _read_tiny_imagenet(path: Path) -> RawArrays:
    """Decode JPEG files that are kept in one file of arrays; grayscale ones get three equal channels."""
    with open_npz(path) as arrays:
        train, test = (Part(_decoded(arrays, side), arrays[f"y_{side}"]) for side in ("train", "test"))
        names = tuple(map(str, arrays["class_names"]))
    return RawArrays(train, test, class_names=names, notes=("grayscale images have three equal channels",))


def _decoded(arrays: Mapping[str, Array], side: str) -> Array:
    library, content = pillow(), arrays[f"{side}_bytes"].tobytes()
    files = [io.BytesIO(content[start:end]) for start, end in pairwise(arrays[f"{side}_offsets"].tolist())]
    return np.stack([np.asarray(library.open(file, formats=("JPEG",)).convert("RGB")) for file in files])


READERS: dict[str, Callable[..., RawArrays]] = {
    "npz": read_npz,
    "fashion-mnist": _read_fashion_mnist,
    "cifar": read_cifar,
    "stl10": read_stl10,
    "stl10-unlabelled": read_stl10_unlabelled,
    "stl10-all": read_stl10_all,
    "tiny-imagenet": _read_tiny_imagenet,
    "har": read_har,
}
"""From the paths of a set's files, in their order, to what they hold; by the name that ``Entry.reader`` has."""

SET_READERS: dict[str, Callable[..., RawArrays]] = {
    "scikit-learn": _read_bundled,
    "class-folders": _read_class_folders,
    "reuters10k": read_reuters10k,
    "reuters21578": read_reuters21578,
    "mslr": read_mslr,
    "svmlight": read_svmlight_files,
}
"""Those that need to know more of a set than its files: they are given the entry first."""
