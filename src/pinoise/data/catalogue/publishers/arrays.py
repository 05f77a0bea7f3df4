"""Sets that come as arrays: scikit-learn's own, NumPy files, and images in their publishers' formats."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.encoding.arrays import learn_arrays
from pinoise.data.formats.arrays import open_npz, read_npz
from pinoise.data.formats.binary import read_idx
from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.data.images.decoding import pillow
from pinoise.data.images.reading import read_image_folder
from pinoise.data.options import ReadOptions
from pinoise.data.splitting import split
from pinoise.errors import UserError

SetReader = Callable[[Entry, Sequence[Path]], Dataset]
"""From an entry of the catalogue and the paths of its files, in their order, to the data."""


def read_bundled(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Return the set of this name that comes with scikit-learn, with a stratified split."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{entry.name}")()
    whole = Dataset(
        entry.name,
        train=Part(np.asarray(bunch.data, dtype=np.float32), np.asarray(bunch.target, dtype=np.int64)),
        feature_names=tuple(str(feature) for feature in bunch.feature_names),
        class_names=tuple(str(label) for label in bunch.target_names),
    )
    return split(whole)


def array_reader(read: Callable[[Path], RawArrays]) -> SetReader:
    """Return the reader of a set in one file or folder of arrays; class names in it come before the entry's."""

    def read_set(entry: Entry, paths: Sequence[Path]) -> Dataset:
        (path,) = paths
        raw = read(path)
        return _numbered(entry, replace(raw, class_names=raw.class_names or entry.class_names), path)

    return read_set


def read_fashion_mnist(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read training images and labels and test images and labels, or the one file that has all four."""
    if len(paths) == 1:
        return array_reader(read_npz)(entry, paths)
    x_train, y_train, x_test, y_test = (read_idx(path) for path in paths)
    raw = RawArrays(RawPart(x_train, y_train), RawPart(x_test, y_test), class_names=entry.class_names)
    return _numbered(entry, raw, paths[0].parent)


def read_tiny_imagenet(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Decode JPEG files that are kept in one file of arrays; grayscale ones get three equal channels."""
    (path,) = paths
    with open_npz(path) as arrays:
        raw = RawArrays(
            train=_decoded(path, arrays, "train", entry.shape),
            test=_decoded(path, arrays, "test", entry.shape),
            class_names=tuple(str(name) for name in arrays["class_names"]),
            notes=("grayscale images have three equal channels",),
        )
    return _numbered(entry, raw, path)


def read_class_folders(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read the folders train and val of a folder, each with one folder per class, at the entry's height and width."""
    (path,) = paths
    height, width, _ = entry.shape
    raw = read_image_folder(path, ReadOptions(size=(height, width), color="rgb"))
    if raw.test is None or raw.train.y is None:
        raise UserError(
            f"{path} is not a folder with train and val, each with one folder for every class: sort the images so, as "
            "the publisher's lists of classes say."
        )
    return _numbered(entry, raw, path)


def _numbered(entry: Entry, raw: RawArrays, where: Path) -> Dataset:
    """Return arrays as a data set with class numbers."""
    return learn_arrays(raw, name=entry.name, where=str(where))[0]


def _decoded(path: Path, arrays: Mapping[str, Array], side: str, shape: tuple[int, ...]) -> RawPart:
    library = pillow()
    content = arrays[f"{side}_bytes"].tobytes()
    offsets = arrays[f"{side}_offsets"].tolist()
    images: npt.NDArray[np.uint8] = np.empty((len(offsets) - 1, *shape), dtype=np.uint8)
    for row, (start, end) in enumerate(pairwise(offsets)):
        try:
            with library.open(io.BytesIO(content[start:end]), formats=("JPEG",)) as image:
                pixels = np.asarray(image.convert("RGB"))
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise errors of every kind for damaged files
            raise UserError(f"{path}, {side} image {row}: it cannot be decoded as JPEG.") from error
        if pixels.shape != shape:
            raise UserError(f"{path}, {side} image {row}: its shape is {pixels.shape}, not {shape}.")
        images[row] = pixels
    return RawPart(images, arrays[f"y_{side}"])
