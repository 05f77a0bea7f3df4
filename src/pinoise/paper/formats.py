"""Sets of images in their publishers' binary files: MNIST's IDX, CIFAR-10, CIFAR-100 and STL-10."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pinoise.data.checks import check_memory
from pinoise.data.dataset import Array, Part, RawArrays
from pinoise.data.formats.opened import open_compressed
from pinoise.data.lazy import FileRows, LazyArray, MappedRows
from pinoise.errors import UserError, damage_named, listed
from pinoise.paper.archives import members

# The third byte of an IDX file; numbers are big-endian.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

# Files of CIFAR-10 and CIFAR-100 to train on, to test on and with the names of classes, and how many labels come before
# the pixels in a row, of which the last is the fine one.
_BATCHES = ("data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin")
_CIFAR = (
    (_BATCHES, ("test_batch.bin",), "batches.meta.txt", 1),
    (("train.bin",), ("test.bin",), "fine_label_names.txt", 2),
)
_PICKLES = (("data_batch_1", "batches.meta"), ("train", "meta"))  # of the python version, and what is beside them


class Format(NamedTuple):
    """How a set is published: what recognises its unpacked folder, and what reads it."""

    holds: Callable[[Path], bool]
    read: Callable[[Path], RawArrays]


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
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not 0 < start[3] <= 32:
            wanted = "two zeros, a type and a number of axes up to 32"
            raise UserError(f"{path} is not an IDX file: it begins with {start!r} instead of {wanted}.")
        sizes = stream.read(4 * start[3])
        if len(sizes) < 4 * start[3]:
            raise UserError(f"{path} is cut off within its header: get the file again.")
        dtype, shape = np.dtype(_TYPES[start[2]]), tuple(np.frombuffer(sizes, ">u4").tolist())
        size = dtype.itemsize * prod(shape)
        check_memory(size, where=path, what="the array")
        content = np.empty(size, np.uint8)
        found, more = stream.readinto(content.data), stream.read(1)
    if more or found < size:
        raise UserError(
            f"{path} is {'too long' if more else 'cut off'}: its header promises {' × '.join(map(str, shape))} values "
            f"of type {dtype.name}, {size} bytes, but {'more' if more else found} were found; get the file again."
        )
    return content.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def read_idx_samples(path: Path) -> RawArrays:
    """Read one file of samples, with the labels of the file beside it if the two are named as MNIST's are."""
    name = path.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    labels = _idx_file(path.parent, name) if "images" in path.name else None
    return RawArrays(Part(read_idx(path), None if labels is None else read_idx(labels)))


def holds_idx(folder: Path) -> bool:
    """Whether a folder holds the training images of MNIST or a set like it."""
    return _idx_file(folder, "train-images-idx3-ubyte") is not None


def read_idx_set(folder: Path) -> RawArrays:
    """Read ``train-images-idx3-ubyte``, ``t10k-images-idx3-ubyte`` and their labels, each plain or with ``.gz``.

    One file that is named instead of a folder is read alone, with its labels.
    """
    if not folder.is_dir():
        return read_idx_samples(folder)
    paths = (_idx_file(folder, f"{side}-images-idx3-ubyte") for side in ("train", "t10k"))
    parts = [read_idx_samples(path).train for path in paths if path is not None]
    return RawArrays(parts[0], parts[1] if len(parts) > 1 else None)


def _idx_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name, or of the name with a dot before ``idx``, plain or with ``.gz``."""
    names = (each + packed for each in (name, name.replace("-idx", ".idx")) for packed in ("", ".gz"))
    return next((folder / each for each in names if (folder / each).is_file()), None)


def holds_cifar(folder: Path) -> bool:
    """Whether a folder holds the files of CIFAR-10 or CIFAR-100, or at least the first ones."""
    first = [(train[0], names) for train, _, names, _ in _CIFAR]
    return any(all((folder / name).is_file() for name in names) for names in (*first, *_PICKLES))


def read_cifar(path: Path) -> RawArrays:
    """Read the binary version, ``.tar.gz`` or the folder it unpacks to.

    Images are (n, 32, 32, 3), and labels of CIFAR-100 the fine ones. The python version is made of pickles, which can
    run any code, so it is refused.
    """
    contents = _contents(path)
    version = next((version for version in _CIFAR if version[0][0] in contents), None)
    if version is None:
        python = any(set(names) <= contents.keys() for names in _PICKLES)
        wrong = "is the python version of CIFAR, whose pickles can run code" if python else "holds no file of CIFAR"
        raise UserError(f"{path} {wrong}: get the binary version from https://www.cs.toronto.edu/~kriz/cifar.html.")
    *sides, names, labels = version
    train, test = (_cifar_part(files, labels, contents, path) for files in sides)
    lines = contents.get(names, b"").decode("utf-8", errors="replace").splitlines()
    return RawArrays(train, test, class_names=tuple(line.strip() for line in lines if line.strip()) or None)


def _contents(path: Path) -> dict[str, bytes]:
    """Return the files of a version by name; other files are not read."""
    wanted = {name for train, test, names, _ in _CIFAR for name in (*train, *test, names)}.union(*_PICKLES)
    with damage_named(path, OSError):
        if path.is_dir():
            return {name: (path / name).read_bytes() for name in wanted if (path / name).is_file()}
        found = ((Path(member).name, stream) for member, stream in members(path, "*"))
        return {name: stream.read() for name, stream in found if name in wanted}


def _cifar_part(files: Sequence[str], labels: int, contents: dict[str, bytes], path: Path) -> Part:
    if missing := [name for name in files if name not in contents]:
        raise UserError(f"{path} lacks {listed(missing)}: get the whole set from its publisher.")
    width = labels + 3 * 32 * 32
    for name in files:
        _whole_rows(len(contents[name]), width, where=f"{path}, {name}")
    rows = np.frombuffer(b"".join(contents[name] for name in files), np.uint8).reshape(-1, width)
    images = rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # stored channel by channel
    return Part(np.ascontiguousarray(images), rows[:, labels - 1].astype(np.int64))


def _whole_rows(size: int, width: int, *, where: str) -> int:
    """Return how many rows of ``width`` bytes a file of ``size`` bytes holds; a part of a row is an error."""
    rows, rest = divmod(size, width)
    if rest or not rows:
        expected = f"{rows * width} or {(rows + 1) * width} bytes were expected"
        raise UserError(f"{where} has {size} bytes: an image takes {width}, so {expected}; get the file again.")
    return rows


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
    return RawArrays(Part(read_stl10_images(folder / "unlabeled_X.bin")), notes=(note,))


def read_stl10_all(folder: Path) -> RawArrays:
    """Read the labelled training images and then the unlabelled ones, as rows to train on without labels."""
    images = [read_stl10_images(folder / f"{side}_X.bin") for side in ("train", "unlabeled")]
    note = "labels are not read: score on the set stl10, whose test images are not among these"
    return RawArrays(Part(JoinedRows(images)), notes=(note,))


def read_stl10_images(path: Path) -> LazyArray:
    """Open a file of images as (n, 96, 96, 3), never read whole; in it each channel is stored column by column."""
    with damage_named(path, OSError):
        rows = _whole_rows(path.stat().st_size, 3 * 96 * 96, where=str(path))
    stored = FileRows(path, (rows, 3, 96, 96), np.dtype(np.uint8))  # channel, column, row
    return MappedRows(stored, partial(np.transpose, axes=(0, 3, 2, 1)), sample_shape=(96, 96, 3))


class JoinedRows(LazyArray):
    """The rows of several arrays, one array after another.

    >>> rows = JoinedRows([MappedRows(np.arange(6).reshape(3, 2)), np.array([[9, 9]])])
    >>> rows.shape, rows[np.array([3, 0])].tolist(), rows.take(np.array([2, 3]))[:].tolist()
    ((4, 2), [[9, 9], [0, 1]], [[4, 5], [9, 9]])
    """

    def __init__(self, arrays: Sequence[Array | LazyArray]) -> None:
        """Join arrays of samples of one shape and type."""
        self._arrays, self._starts = tuple(arrays), np.cumsum([0, *map(len, arrays)])
        super().__init__((int(self._starts[-1]), *arrays[0].shape[1:]), arrays[0].dtype)

    def _read(self, numbers: npt.NDArray[np.integer]) -> Array:
        batch = np.empty((len(numbers), *self._sample_shape), self.dtype)
        for array, (start, stop) in zip(self._arrays, pairwise(self._starts), strict=True):
            here = (start <= numbers) & (numbers < stop)
            batch[here] = array[numbers[here] - start]
        return batch


def _stl10_part(folder: Path, side: str) -> Part:
    x, path = read_stl10_images(folder / f"{side}_X.bin"), folder / f"{side}_y.bin"
    with damage_named(path, OSError):
        y = np.frombuffer(path.read_bytes(), np.uint8)
    if 0 in y:
        raise UserError(f"{path} has a label of 0 in row {int(y.argmin())} (counted from 0): labels count from 1.")
    return Part(x, y.astype(np.int64) - 1)


IDX = Format(holds_idx, read_idx_set)
CIFAR = Format(holds_cifar, read_cifar)
STL10 = Format(holds_stl10, read_stl10)
