"""Finished cells of comparisons on disk, so that a comparison can be stopped and go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pinoise.data.disk import kept, peek, place_of
from pinoise.files import cache_folder, check_writable, sha256_of


def default_cache_folder() -> Path:
    """Return the folder of finished cells: ``cells`` in ``PINOISE_CACHE``, or in the platform's folder for caches."""
    return cache_folder() / "cells"


def cell_key(parts: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything that a cell depends on, in any order.

    A value that JSON cannot hold is a TypeError, and NaN a ValueError.

    >>> cell_key({"seed": 0, "data": "wine"}) == cell_key({"data": "wine", "seed": 0})
    True
    >>> cell_key({"seed": 0}) == cell_key({"seed": 0.0})
    False
    """
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def by_content(value: Any) -> Any:
    """Return nested settings in the types of JSON; the path of a file becomes the SHA-256 of the file.

    A path without a file stays a path.

    >>> import tempfile
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
    """Finished cells in a folder. A folder that cannot be written to is refused at once, so that it costs no fit.

    >>> import tempfile
    >>> parts = {"data": "wine", "method": "scarf", "seed": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = CellCache(Path(folder))
    ...     cache.put(parts, {"knn": 0.9})
    ...     cache.get(parts), cache.get({**parts, "seed": 1})
    ({'knn': 0.9}, None)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_writable(folder, what="finished cells")

    def get(self, parts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the value of the cell that depends on ``parts``; None if it is missing or damaged."""
        found = peek(self._place(parts), parts)
        return None if found is None else found.about

    def put(self, parts: Mapping[str, Any], value: Mapping[str, Any]) -> None:
        """Keep the value of the cell that depends on ``parts``. Of two processes, the earlier one's value stays."""
        kept(self._place(parts), parts, lambda _: value)

    def _place(self, parts: Mapping[str, Any]) -> Path:
        return place_of("cells", str(parts.get("method", "cost")), cell_key(parts), folder=self.folder)
