"""The one store of what is made from files once and used often: encoded rows, conversions, masks, findings.

What is kept for one purpose is one folder: the files that its maker wrote, and ``about.json``, which says what they
were made from. A folder is written under another name and renamed when it is complete, so that a killed process leaves
nothing half made, and the next one removes what it left. Of several processes one makes it and the others wait. What
was made from other files, by other rules, or was written to since, is made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from filelock import FileLock, Timeout

from pinoise.data.formats.opened import state_of
from pinoise.files import cache_folder, read_json, sync, to_json, write_json, writing

VERSION = 1  # to be raised whenever a maker writes other files for the same key

_ABOUT = "about.json"
_NAME = 32  # characters of a name that a place has, as file systems limit names to about 255 bytes


class KeptFolder(NamedTuple):
    """A folder of files, and what their maker said about them."""

    folder: Path
    about: dict[str, Any]


def place_of(kind: str, name: str, *about: object, folder: Path | None = None) -> Path:
    """Return where something is kept.

    Args:
        kind: what it is, such as ``rows``: a folder of the cache.
        name: what a person would call it.
        about: JSON values that tell it from others of the same name.
        folder: the user's own folder in place of the cache.
    """
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return (folder or cache_folder() / kind) / f"{name[:_NAME] or kind}-{digest}"


def kept(
    place: Path, key: object, make: Callable[[Path], Mapping[str, Any]], *, waiting: str | None = None
) -> KeptFolder:
    """Return what is kept at a place, made now unless it is there.

    Args:
        place: see ``place_of``.
        key: JSON values; what was kept for another key is made again.
        make: writes files into the empty folder that it is given, and returns JSON values to be kept with them.
        waiting: what a process says that waits for another one.

    >>> import tempfile
    >>> def make(folder):
    ...     _ = Path(folder, "a.txt").write_text("content")
    ...     return {"rows": 3}
    >>> with tempfile.TemporaryDirectory() as cache:
    ...     first = kept(Path(cache, "toy"), ["v1"], make)
    ...     again = kept(Path(cache, "toy"), ["v1"], lambda folder: 1 / 0)
    ...     first == again, again.about, (again.folder / "a.txt").read_text()
    (True, {'rows': 3}, 'content')
    """
    found = peek(place, key)
    if found is not None:
        return found
    with writing(place.parent, advice="make room, or choose another folder with PINOISE_CACHE"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with locked(place, waiting=waiting):
            return peek(place, key) or _made(place, key, make)


@contextmanager
def locked(path: Path, *, waiting: str | None = None) -> Iterator[None]:
    """Let one process at a time run the block, with a lock file beside ``path``.

    The system frees the lock when its process ends. A process that has to wait prints the sentence ``waiting``. The
    empty lock file stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, "a")):
    ...     [path.name for path in Path(folder).iterdir()]
    ['a.lock']
    """
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        acquired = lock.acquire(blocking=False)
    except Timeout:
        if waiting is not None:
            print(waiting, file=sys.stderr)
        acquired = lock.acquire()
    with acquired:  # which is released at the end
        yield


def peek(place: Path, key: object) -> KeptFolder | None:
    """Return what is kept at a place for a key, None without it."""
    try:
        stored = read_json(place / _ABOUT)
        files = {name: list(state_of(place / name)) for name in stored["files"]}
        if stored["key"] != _plain([VERSION, key]) or files != stored["files"]:
            return None
        return KeptFolder(place, stored["about"])
    except (OSError, ValueError, KeyError, TypeError):  # absent, cut off or written by someone else
        return None


def write_rows(path: Path, blocks: Iterable[npt.NDArray[Any]], *, shape: tuple[int, ...], dtype: npt.DTypeLike) -> int:
    """Write blocks of samples one after another as one ``.npy`` file, and return how many rows it has.

    Args:
        path: a new file.
        blocks: arrays of samples.
        shape: of one sample.
        dtype: of the values in the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.npy")
    ...     _ = write_rows(path, [np.eye(2), np.ones((1, 2))], shape=(2,), dtype="float32")
    ...     np.load(path).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """
    rows, kind = 0, np.dtype(dtype)
    about = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, *shape)}
    with path.open("xb") as stream:
        np.lib.format.write_array_header_1_0(stream, about)
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype=kind).data)
            rows += len(block)
        stream.seek(0)  # NumPy leaves room for a longer number of rows
        np.lib.format.write_array_header_1_0(stream, {**about, "shape": (rows, *shape)})
    return rows


def _made(place: Path, key: object, make: Callable[[Path], Mapping[str, Any]]) -> KeptFolder:
    """Make what belongs to a place. The caller holds its lock."""
    temporary = place.with_name(f".{place.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)  # of a killed process
    try:
        temporary.mkdir()
        about = _plain(make(temporary))
        written = sorted(temporary.iterdir())
        for file in written:
            sync(file)
        files = {file.name: list(state_of(file)) for file in written}
        write_json(temporary / _ABOUT, {"key": _plain([VERSION, key]), "files": files, "about": about})
        if place.exists():  # of another key
            shutil.rmtree(place)
        temporary.rename(place)
        sync(place.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return KeptFolder(place, about)


def _plain(value: object) -> Any:
    """Return a value as ``read_json`` gives back what ``write_json`` wrote."""
    return json.loads(to_json(value))
