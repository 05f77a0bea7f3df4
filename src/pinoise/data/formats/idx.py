"""IDX files, the format of MNIST and Fashion-MNIST: a header of a few bytes, then one array."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pinoise.data.formats.archives import open_compressed
from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.data.limits import check_memory, free_memory
from pinoise.errors import UserError

# The third byte of a file; numbers are big-endian.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_BLOCK = 1 << 20
_MOST_AXES = 32  # of NumPy before version 2

_IMAGES = re.compile(r"images(?P<mark>[-.])idx\d-ubyte(?P<packed>(\.gz)?)$")
_SIDES = {"train": "train", "test": "t10k"}


def read_idx(path: Path) -> Array:
    """Read the array of an IDX file, plain or compressed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     read_idx(path)
    array([7, 8, 9], dtype=uint8)
    """
    with open_compressed(path, limit=None) as stream:
        dtype, shape, header = _read_header(stream, path)
        wanted = dtype.itemsize
        for size in shape:
            wanted *= size
        # Block by block: a damaged header may ask for more than any memory holds.
        content, found = bytearray(), 0
        most = min(wanted, free_memory() or wanted)
        while block := stream.read(_BLOCK):
            content += block[: wanted - len(content)]
            found += len(block)
            if len(content) >= most:
                check_memory(wanted, where=path, what="the array")
    if found != wanted:
        dimensions = " × ".join(map(str, shape))
        state = "cut off" if found < wanted else "too long"
        raise UserError(
            f"{path} is {state}: its header promises {dimensions} values of type {dtype.name}, {header + wanted} bytes "
            f"in all, but {header + found} were found; get the file again."
        )
    array = np.frombuffer(content, dtype=dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def read_idx_samples(path: Path) -> RawArrays:
    """Read one file of samples, with the labels of the file beside it if the two are named as MNIST's are."""
    x = read_idx(path)
    labels = _labels_beside(path)
    return RawArrays(RawPart(x, None if labels is None else read_idx(labels)))


def holds_idx(folder: Path) -> bool:
    """Whether a folder holds the training images of MNIST or a set like it."""
    return _images_of(folder, "train") is not None


def read_idx_folder(folder: Path) -> RawArrays:
    """Read ``train-images-idx3-ubyte``, ``t10k-images-idx3-ubyte`` and their labels, each plain or with ``.gz``."""
    train, test = (_images_of(folder, side) for side in ("train", "test"))
    if train is None:
        raise UserError(f"{folder} holds no file train-images-idx3-ubyte, with or without .gz.")
    return RawArrays(read_idx_samples(train).train, None if test is None else read_idx_samples(test).train)


def _images_of(folder: Path, side: str) -> Path | None:
    names = (f"{_SIDES[side]}-images{mark}idx3-ubyte{packed}" for mark in "-." for packed in ("", ".gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _labels_beside(path: Path) -> Path | None:
    found = _IMAGES.search(path.name)
    if found is None:
        return None
    start = path.name[: found.start()] + f"labels{found['mark']}idx1-ubyte"
    # A set may be unpacked in part.
    names = (start + packed for packed in (found["packed"], "", ".gz"))
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def _read_header(stream: BinaryIO, path: Path) -> tuple[np.dtype[np.generic], tuple[int, ...], int]:
    """Return the type, the shape, and the length of the header in bytes."""
    start = stream.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or start[3] == 0:
        raise UserError(
            f"{path} is not an IDX file: it begins with {start!r} instead of two zeros, a type and a number of axes."
        )
    axes = start[3]
    if axes > _MOST_AXES:
        raise UserError(f"{path} has {axes} axes: an array has at most {_MOST_AXES}; is it an IDX file?")
    sizes = stream.read(4 * axes)
    if len(sizes) < 4 * axes:
        raise UserError(
            f"{path} is cut off: the header of an IDX file of {axes} axes has {4 + 4 * axes} bytes, but "
            f"{4 + len(sizes)} were found; get the file again."
        )
    return np.dtype(_TYPES[start[2]]), tuple(np.frombuffer(sizes, ">u4").tolist()), 4 + 4 * axes
