"""Sets of images in their publishers' binary files: MNIST's IDX, CIFAR-10, CIFAR-100 and STL-10."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from pinoise.data.dataset import Array, RawArrays, RawPart
from pinoise.data.formats.archives import members, open_compressed
from pinoise.data.lazy import FileRows, JoinedRows
from pinoise.data.messages import check_memory, counted, damage_named, listed, whole_rows
from pinoise.errors import UserError
from pinoise.files import open_regular

# The third byte of an IDX file; numbers are big-endian.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_BLOCK = 1 << 20
_MOST_AXES = 32  # of NumPy before version 2
_IMAGES = re.compile(r"images(?P<mark>[-.])idx\d-ubyte(?P<packed>(\.gz)?)$")


def read_idx(path: Path) -> Array:
    """Read the array of an IDX file, plain or compressed: a header of a few bytes, then the values.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     read_idx(path)
    array([7, 8, 9], dtype=uint8)
    """
    with open_compressed(path, limit=None) as stream:
        start = stream.read(4)
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not 0 < start[3] <= _MOST_AXES:
            raise UserError(
                f"{path} is not an IDX file: it begins with {start!r} instead of two zeros, a type and a number of "
                f"axes up to {_MOST_AXES}."
            )
        sizes = stream.read(4 * start[3])
        if len(sizes) < 4 * start[3]:
            raise UserError(f"{path} is cut off within its header: get the file again.")
        dtype, shape = np.dtype(_TYPES[start[2]]), tuple(np.frombuffer(sizes, ">u4").tolist())
        wanted = dtype.itemsize * prod(shape)
        check_memory(wanted, where=path, what="the array")
        content = bytearray()
        while block := stream.read(min(_BLOCK, wanted - len(content))):
            content += block
        more = stream.read(1)
    if more or len(content) < wanted:
        raise UserError(
            f"{path} is {'too long' if more else 'cut off'}: its header promises {' × '.join(map(str, shape))} values "
            f"of type {dtype.name}, {wanted} bytes, but {'more' if more else len(content)} were found; get the file "
            "again."
        )
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def read_idx_samples(path: Path) -> RawArrays:
    """Read one file of samples, with the labels of the file beside it if the two are named as MNIST's are."""
    labels: Path | None = None
    if found := _IMAGES.search(path.name):
        start = f"{path.name[: found.start()]}labels{found['mark']}idx1-ubyte"
        labels = _first_file(path.parent, [start + packed for packed in (found["packed"], "", ".gz")])
    return RawArrays(RawPart(read_idx(path), None if labels is None else read_idx(labels)))


def holds_idx(folder: Path) -> bool:
    """Whether a folder holds the training images of MNIST or a set like it."""
    return _idx_images(folder, "train") is not None


def read_idx_folder(folder: Path) -> RawArrays:
    """Read ``train-images-idx3-ubyte``, ``t10k-images-idx3-ubyte`` and their labels, each plain or with ``.gz``."""
    train, test = _idx_images(folder, "train"), _idx_images(folder, "t10k")
    if train is None:
        raise UserError(f"{folder} holds no file train-images-idx3-ubyte, with or without .gz.")
    return RawArrays(read_idx_samples(train).train, None if test is None else read_idx_samples(test).train)


def _idx_images(folder: Path, side: str) -> Path | None:
    return _first_file(folder, [f"{side}-images{mark}idx3-ubyte{packed}" for mark in "-." for packed in ("", ".gz")])


def _first_file(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


@dataclass(frozen=True)
class _Cifar:
    """How the files of CIFAR-10 or CIFAR-100 are called, and how many labels come before the pixels in a row."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str  # of classes
    labels: int  # of which the last is the fine one


_BATCHES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_CIFAR = (
    _Cifar(_BATCHES, ("test_batch.bin",), "batches.meta.txt", labels=1),
    _Cifar(("train.bin",), ("test.bin",), "fine_label_names.txt", labels=2),
)
_PICKLES = (("data_batch_1", "batches.meta"), ("train", "meta"))  # of the python version, and what is beside them
_PIXELS = 3 * 32 * 32


def holds_cifar(folder: Path) -> bool:
    """Whether a folder holds the files of CIFAR-10 or CIFAR-100, or at least the first ones."""
    first = [(each.train[0], each.names) for each in _CIFAR]
    return any(all((folder / name).is_file() for name in names) for names in (*first, *_PICKLES))


def read_cifar(path: Path) -> RawArrays:
    """Read the binary version, ``.tar.gz`` or the folder it unpacks to.

    Images are (n, 32, 32, 3), and labels of CIFAR-100 the fine ones. The python version is made of pickles, which can
    run any code, so it is refused.
    """
    contents = _contents(path)
    found = next((each for each in _CIFAR if each.train[0] in contents), None)
    if found is None and any(names <= contents.keys() for names in map(set, _PICKLES)):
        raise UserError(
            f"{path} is the python version of CIFAR, whose pickles can run code: get the binary version from the same "
            "page, https://www.cs.toronto.edu/~kriz/cifar.html."
        )
    if found is None:
        raise UserError(
            f"{path} holds no training file of CIFAR-10 or CIFAR-100, such as data_batch_1.bin or train.bin; "
            f"it holds {listed(sorted(contents)) or 'nothing'}."
        )
    lines = contents.get(found.names, b"").decode("utf-8", errors="replace").splitlines()
    names = tuple(line.strip() for line in lines if line.strip()) or None
    train, test = (_cifar_part(files, found.labels, contents, path) for files in (found.train, found.test))
    return RawArrays(train, test, class_names=names)


def _contents(path: Path) -> dict[str, bytes]:
    """Return the files of a version by name; other files are not read."""
    wanted = {name for each in _CIFAR for name in (*each.train, *each.test, each.names)}.union(*_PICKLES)
    with damage_named(path, OSError):
        if path.is_dir():
            return {name: (path / name).read_bytes() for name in wanted if (path / name).is_file()}
        found = ((Path(member).name, stream) for member, stream in members(path, "*"))
        return {name: stream.read() for name, stream in found if name in wanted}


def _cifar_part(files: Sequence[str], labels: int, contents: dict[str, bytes], path: Path) -> RawPart:
    if missing := [name for name in files if name not in contents]:
        raise UserError(f"{path} lacks {listed(missing)}: get the whole set from its publisher.")
    for name in files:
        whole_rows(len(contents[name]), labels + _PIXELS, where=f"{path}, {name}")
    rows = np.frombuffer(b"".join(contents[name] for name in files), np.uint8).reshape(-1, labels + _PIXELS)
    images = rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # stored channel by channel
    return RawPart(np.ascontiguousarray(images), rows[:, labels - 1].copy())


def holds_stl10(folder: Path) -> bool:
    """Whether a folder holds the labelled training images of STL-10."""
    return (folder / "train_X.bin").is_file()


def read_stl10(folder: Path) -> RawArrays:
    """Read the labelled images of an unpacked folder, 96 × 96 × 3; labels count from 1 in the files and from 0 here."""
    names = folder / "class_names.txt"
    return RawArrays(
        train=_stl10_part(folder, "train"),
        test=_stl10_part(folder, "test") if (folder / "test_X.bin").is_file() else None,
        class_names=tuple(names.read_text(errors="replace").split()) or None if names.is_file() else None,
    )


def read_stl10_unlabelled(folder: Path) -> RawArrays:
    """Read the unlabelled images of an unpacked folder as rows to train on."""
    note = "the labelled images are not among these: they are the set stl10"
    return RawArrays(RawPart(read_stl10_images(folder / "unlabeled_X.bin")), notes=(note,))


def read_stl10_all(folder: Path) -> RawArrays:
    """Read the labelled training images and then the unlabelled ones, as rows to train on without labels."""
    images = [read_stl10_images(folder / f"{side}_X.bin") for side in ("train", "unlabeled")]
    note = "labels are not read: score on the set stl10, whose test images are not among these"
    return RawArrays(RawPart(JoinedRows(images)), notes=(note,))


def read_stl10_images(path: Path) -> FileRows:
    """Open a file of images as (n, 96, 96, 3), never read whole; in it each channel is stored column by column."""
    with damage_named(path, OSError):
        rows = whole_rows(path.stat().st_size, 3 * 96 * 96, where=path, noun="images")
    return FileRows(path, (rows, 3, 96, 96), np.dtype(np.uint8), axes=(0, 3, 2, 1))  # channel, column, row


def _stl10_part(folder: Path, side: str) -> RawPart:
    x, path = read_stl10_images(folder / f"{side}_X.bin"), folder / f"{side}_y.bin"
    with damage_named(path, OSError), open_regular(path) as stream:
        y = np.frombuffer(stream.read(), np.uint8)
    if len(y) != len(x):
        raise UserError(
            f"{path} has {counted(len(y), 'label')}, but there are {counted(len(x), 'image')}: a file is cut off."
        )
    if y.min() < 1:
        raise UserError(f"{path} has a label of 0 in row {int(y.argmin())} (counted from 0): labels count from 1.")
    return RawPart(x, y - 1)
