"""Finished cells of comparisons on disk, so that a comparison can be stopped and go on.

A cell is one small JSON file, named after the checksum of what it is made of. It appears complete or not at all, so
several processes may share the folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pinoise.errors import UserError
from pinoise.files import cache_folder, sha256_of, write_text


def default_cache_folder() -> Path:
    """Return the folder of finished cells: ``cells`` in ``PINOISE_CACHE``, or in the platform's folder for caches."""
    return cache_folder() / "cells"


def cell_key(parts: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything that a cell depends on, in any order.

    A value that JSON cannot hold, such as NaN or a key that is not text, is a TypeError.

    >>> cell_key({"seed": 0, "data": "wine"}) == cell_key({"data": "wine", "seed": 0})
    True
    >>> cell_key({"seed": 0}) == cell_key({"seed": 0.0})
    False
    """
    canonical = json.dumps(_plain(parts), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def by_content(value: Any) -> Any:
    """Return nested settings in the types of JSON; the path of a file becomes the SHA-256 of the file.

    A path without a file stays a path.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "masks.npy")
    ...     _ = file.write_bytes(b"")
    ...     by_content({"masks": file, "rates": (1, 2)})["masks"][:14]
    'sha256:e3b0c44'
    """
    if isinstance(value, Mapping):
        return {key: by_content(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [by_content(item) for item in value]
    if not isinstance(value, Path):
        return value
    try:
        state = value.expanduser().stat()
        return f"sha256:{_file_checksum(value.expanduser().resolve(), state.st_size, state.st_mtime_ns)}"
    except OSError:  # the code that needs the file reports it
        return str(value)


@lru_cache
def _file_checksum(path: Path, size: int, time: int) -> str:
    """Return the SHA-256 of a file. Its size and time are arguments, so that an unchanged file is read once."""
    return sha256_of(path)


class CellCache:
    """Finished cells in a folder. The folder is made and tried at once, so that a fault in it costs no fit.

    >>> parts = {"data": "wine", "method": "scarf", "seed": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = CellCache(Path(folder))
    ...     cache.put(cell_key(parts), {"knn": 0.9}, parts=parts)
    ...     cache.get(cell_key(parts)), cache.get(cell_key({**parts, "seed": 1}))
    ({'knn': 0.9}, None)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise self._unwritable(error) from error

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the value of a cell; None if it is missing, damaged, or not one of ours."""
        try:
            cell = json.loads(self._path(key).read_text(encoding="utf-8"))
            value = cell["value"]
            sound = cell_key(cell["parts"]) == key and cell_key(value) == cell["checksum"]
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None
        return value if sound else None

    def put(self, key: str, value: Mapping[str, Any], *, parts: Mapping[str, Any]) -> None:
        """Keep the value of a cell, and beside it the ``parts`` that its key was made from.

        Of two processes that finish the same cell, the later one's value stays.
        """
        if cell_key(parts) != key:
            raise ValueError(f"the key {key!r} was not made from the parts {dict(parts)!r}.")
        cell = {"parts": _plain(parts), "value": _plain(value), "checksum": cell_key(value)}
        text = json.dumps(cell, indent=2, allow_nan=False) + "\n"
        path = self._path(key)
        try:
            write_text(path, text)
        except OSError as error:
            raise self._unwritable(error) from error

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"cannot keep finished cells in {self.folder} ({error.strerror or error}): make room or make it "
            "writable, or choose another folder with --cache or PINOISE_CACHE."
        )


def _plain(value: object) -> object:
    """Return a value in the types of JSON; tuples become lists."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is a {type(key).__name__}: keys in JSON are text.")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"{value} is not a number in JSON.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON does not have.")
