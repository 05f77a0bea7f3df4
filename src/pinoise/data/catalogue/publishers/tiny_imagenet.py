"""Twenty classes of Tiny-ImageNet, kept as the original JPEG files in one file of arrays."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset
from pinoise.data.formats.arrays import open_npz
from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.errors import UserError

_SIZE = 64


def read_tiny_imagenet(paths: Sequence[Path]) -> Dataset:
    """Decode the JPEG files to uint8 (n, 64, 64, 3); grayscale ones get three equal channels."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UserError("tiny_imagenet20 holds JPEG files: install Pillow to decode them.") from error

    from pinoise.data.preparation import learn_arrays

    (path,) = paths
    with open_npz(path) as arrays:
        raw = RawArrays(
            train=_part(path, arrays, "train", Image),
            test=_part(path, arrays, "test", Image),
            class_names=tuple(str(name) for name in arrays["class_names"]),
        )
    data, _ = learn_arrays(raw, name="tiny_imagenet20", where=str(path))
    return replace(data, notes=("grayscale images have three equal channels",))


def _part(path: Path, arrays: Mapping[str, Array], side: str, pillow: Any) -> RawPart:
    content = arrays[f"{side}_bytes"].tobytes()
    offsets = arrays[f"{side}_offsets"].tolist()
    images: npt.NDArray[np.uint8] = np.empty((len(offsets) - 1, _SIZE, _SIZE, 3), dtype=np.uint8)
    for row, (start, end) in enumerate(pairwise(offsets)):
        try:
            with pillow.open(io.BytesIO(content[start:end]), formats=("JPEG",)) as image:
                pixels = np.asarray(image.convert("RGB"))
        except OSError as error:
            raise UserError(f"{path}, {side} image {row}: it cannot be decoded as JPEG.") from error
        if pixels.shape != images.shape[1:]:
            raise UserError(f"{path}, {side} image {row}: its shape is {pixels.shape}, not {images.shape[1:]}.")
        images[row] = pixels
    return RawPart(images, arrays[f"y_{side}"])


ENTRIES = (
    Entry(
        name="tiny_imagenet20",
        title="Tiny-ImageNet, 20 classes of colour photographs of 64 × 64 pixels",
        shape=(_SIZE, _SIZE, 3),
        classes=20,
        rows=(10000, 1000),
        split="the publisher's training and validation images of 20 of its 200 classes",
        licence="ImageNet's own terms, for research",
        source="Stanford CS231n, Tiny ImageNet Visual Recognition Challenge",
        reader=read_tiny_imagenet,
        files=(
            DataFile(
                "tiny_imagenet20_jpeg.npz",
                sha256="cfa17dc653bf09b0df9879e11e6e355c43004b004522ddd9bbe7cf0a4f053055",
            ),
        ),
    ),
)
