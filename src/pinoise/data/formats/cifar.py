"""CIFAR-10 and CIFAR-100 in their publisher's files: the binary version, and the python version without its risk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pinoise.data.formats.archives import members
from pinoise.data.formats.pickles import read_plain_pickle
from pinoise.data.formats.raw import RawArrays, RawPart
from pinoise.data.messages import counted, damage_named, listed, whole_rows
from pinoise.errors import UserError
from pinoise.files import open_regular

_PIXELS = 3 * 32 * 32
_MOST = 1 << 28  # bytes in one file; the largest has 154 million

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Version:
    """How the files of one version are called, in the order of their rows, and what is in them."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str  # the file with the names of classes
    labels: int = 0  # bytes before the pixels in a row of the binary version
    label_key: str = ""  # and keys of the python version
    names_key: str = ""


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_VERSIONS = (
    _Version(tuple(f"{name}.bin" for name in _BATCHES), ("test_batch.bin",), "batches.meta.txt", labels=1),
    _Version(("train.bin",), ("test.bin",), "fine_label_names.txt", labels=2),
    _Version(_BATCHES, ("test_batch",), "batches.meta", label_key="labels", names_key="label_names"),
    _Version(("train",), ("test",), "meta", label_key="fine_labels", names_key="fine_label_names"),
)


def holds_cifar(folder: Path) -> bool:
    """Whether a folder holds the files of CIFAR-10 or CIFAR-100, or at least the first ones."""
    return any((folder / version.train[0]).is_file() and (folder / version.names).is_file() for version in _VERSIONS)


def read_cifar(path: Path) -> RawArrays:
    """Read ``.tar.gz`` or the folder it unpacks to; images are (n, 32, 32, 3), and labels of CIFAR-100 the fine ones.

    The python version is made of pickles, which can run any code; they are read by a reader that knows only
    dictionaries, lists, text, numbers and arrays of bytes.
    """
    contents = _contents(path)
    version = next((found for found in _VERSIONS if found.train[0] in contents), None)
    if version is None:
        raise UserError(
            f"{path} holds no training file of CIFAR-10 or CIFAR-100, such as data_batch_1.bin or train.bin; "
            f"it holds {listed(sorted(contents)) or 'nothing'}."
        )
    names = _class_names(version, contents, path)
    return RawArrays(
        train=_part(version, version.train, contents, path),
        test=_part(version, version.test, contents, path),
        class_names=names,
    )


def _contents(path: Path) -> dict[str, bytes]:
    """Return the files of a version by name; other files are not read."""
    wanted = {name for version in _VERSIONS for name in (*version.train, *version.test, version.names)}
    return {name: _whole(stream, f"{path}, {name}") for name, stream in _files(path) if name in wanted}


def _files(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    if not path.is_dir():
        for member, stream in members(path, "*"):
            yield Path(member).name, stream
        return
    for file in sorted(path.iterdir()):
        if file.is_file():
            with damage_named(file, OSError), open_regular(file) as stream:
                yield file.name, stream


def _whole(stream: BinaryIO, where: str) -> bytes:
    content = stream.read(_MOST + 1)
    if len(content) > _MOST:
        raise UserError(f"{where} has more than {_MOST} bytes: files of CIFAR-10 and CIFAR-100 are smaller.")
    return content


def _part(version: _Version, files: tuple[str, ...], contents: dict[str, bytes], path: Path) -> RawPart:
    missing = [name for name in files if name not in contents]
    if missing:
        raise UserError(f"{path} lacks {listed(missing)}: get the whole set from its publisher.")
    read = _read_binary if version.labels else _read_python
    batches = [read(contents[name], version, f"{path}, {name}") for name in files]
    x = np.concatenate([images for images, _ in batches])
    # Pixels are stored channel by channel.
    return RawPart(
        np.ascontiguousarray(x.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)),
        np.concatenate([labels for _, labels in batches]),
    )


def _read_binary(content: bytes, version: _Version, where: str) -> tuple[Bytes, Bytes]:
    """Return pixels (n, 3072) and labels (n,); of two labels in a row, the second is the fine one."""
    width = version.labels + _PIXELS
    rows = whole_rows(len(content), width, where=where)
    table = np.frombuffer(content, np.uint8).reshape(rows, width)
    return table[:, version.labels :], table[:, version.labels - 1]


def _read_python(content: bytes, version: _Version, where: str) -> tuple[Bytes, Bytes]:
    batch = _dictionary(content, where)
    images, labels = batch.get("data"), batch.get(version.label_key)
    if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != _PIXELS:
        raise UserError(f"{where} has no array 'data' of {_PIXELS} bytes for each image.")
    if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
        raise UserError(f"{where} has no list {version.label_key!r} of class numbers.")
    if len(labels) != len(images):
        raise UserError(f"{where} has {counted(len(images), 'image')} but {counted(len(labels), 'label')}.")
    return images, np.array(labels, dtype=np.uint8)


def _class_names(version: _Version, contents: dict[str, bytes], path: Path) -> tuple[str, ...] | None:
    content = contents.get(version.names)
    if content is None:
        return None
    if version.labels:
        lines = content.decode("utf-8", errors="replace").splitlines()
        return tuple(line.strip() for line in lines if line.strip()) or None
    where = f"{path}, {version.names}"
    names = _dictionary(content, where).get(version.names_key)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise UserError(f"{where} has no list {version.names_key!r}.")
    return tuple(name.decode("utf-8", errors="replace") if isinstance(name, bytes) else name for name in names)


def _dictionary(content: bytes, where: str) -> dict[str, Any]:
    found = read_plain_pickle(content, where=where)
    if not isinstance(found, dict):
        raise UserError(f"{where} holds a {type(found).__name__} instead of a dictionary.")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): value for key, value in found.items()}
