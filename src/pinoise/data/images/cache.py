"""Decoded images kept on disk as arrays that are mapped, so that they are decoded once and not in every epoch.

For each folder and each choice of options there is one ``.npy`` file for the training part, one for the test part if
there is one, and a ``.json`` file with what they were made from. That file is written last and removed first, so that
it never speaks of arrays that are not there. When the images have changed since, the arrays are made anew. Of several
processes one decodes; the others wait for it at the ``.lock`` file and map what it wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pinoise.data.aside import alone, written_aside
from pinoise.data.images.files import ImageFiles
from pinoise.data.images.folders import ImageFolder
from pinoise.data.images.options import ImageOptions
from pinoise.errors import UserError

VERSION = 2
"""To be raised whenever images are decoded to other pixels, or this file writes another layout."""

_CHUNK = 1 << 24  # bytes decoded before they are written

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ImageCache:
    """The place of the decoded images of one folder under given options."""

    place: Path  # without an extension
    key: dict[str, Any]

    @classmethod
    def of(cls, folder: ImageFolder, options: ImageOptions, *, cache: Path) -> ImageCache:
        """Return the place, which depends on folder and options, and the key, which depends on the files too."""
        root = folder.root.resolve()
        chosen = json.loads(json.dumps(asdict(options)))
        about = json.dumps([VERSION, str(root), chosen])
        place = cache / f"{root.name or 'images'}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"
        return cls(place, {"version": VERSION, "folder": str(root), "options": chosen, "files": _checksum(folder)})

    def read(self) -> tuple[list[Pixels], dict[str, Any]] | None:
        """Return the kept arrays, mapped, and what was written with them; None if there are none or stale ones."""
        try:
            about: dict[str, Any] = json.loads(self._path("json").read_text(encoding="utf-8"))
            if about["key"] != self.key:
                return None
            shapes, told = about["shapes"], about["told"]
            arrays = [np.load(self._path(f"{part}.npy"), mmap_mode="r") for part in range(len(shapes))]
        except (OSError, ValueError, KeyError, TypeError, EOFError):  # absent, cut off or written by someone else
            return None
        return (arrays, told) if [list(array.shape) for array in arrays] == shapes else None

    @contextmanager
    def alone(self, *, progress: bool = False) -> Iterator[None]:
        """Let one process at a time into the block, in which it reads once more and writes if there is nothing yet."""
        folder = self.key["folder"]
        told = f"waiting for another process, which decodes the images of {folder}" if progress else None
        with ExitStack() as held:
            try:
                self.place.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(alone(self.place, told=told))
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    def write(self, parts: Sequence[ImageFiles], told: dict[str, Any], *, bar: Callable[[int], object]) -> list[Pixels]:
        """Decode all images and return them mapped; ``told`` is kept with them, ``bar`` hears how many are done."""
        try:
            self._path("json").unlink(missing_ok=True)
            for part, images in enumerate(parts):
                with written_aside(self._path(f"{part}.npy")) as stream:
                    _write_array(stream, images, bar)
            about = {"key": self.key, "shapes": [list(images.shape) for images in parts], "told": told}
            with written_aside(self._path("json")) as stream:
                stream.write(json.dumps(about).encode())
            return [np.load(self._path(f"{part}.npy"), mmap_mode="r") for part in range(len(parts))]
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"cannot keep decoded images in {self.place.parent} ({error.strerror or error}): choose another folder "
            "for the cache (--set data.cache=FOLDER), or none."
        )

    def _path(self, ending: str) -> Path:
        return self.place.with_name(f"{self.place.name}.{ending}")


def _checksum(folder: ImageFolder) -> str:
    """Return a checksum of the names, sizes and times of change of all files, and of how they are split."""
    digest = hashlib.sha256()
    for part in folder.parts:
        digest.update(f"{len(part.names)}\n".encode())
        for name in part.names:
            try:
                state = (folder.root / name).stat()
            except OSError as error:
                raise UserError(f"cannot read {folder.root / name}: {error.strerror}.") from error
            digest.update(json.dumps([name, state.st_size, state.st_mtime_ns]).encode())
    return digest.hexdigest()


def _write_array(stream: BinaryIO, images: ImageFiles, bar: Callable[[int], object]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    rows = max(1, _CHUNK // int(np.prod(images.shape[1:])))
    for start in range(0, len(images), rows):
        pixels = images[start : start + rows]
        stream.write(pixels.tobytes())
        bar(len(pixels))
