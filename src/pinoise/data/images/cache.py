"""Decoded images kept on disk as arrays that are mapped, so that they are decoded once and not in every epoch.

For each folder and each choice of options there is one ``.npy`` file for the training part, one for the test part if
there is one, and a ``.json`` file with what they were made from. That file is written last and removed first, so that
it never describes arrays that are not there. When the images have changed since, the arrays are made again. Of several
processes one decodes; the others wait for it at the ``.lock`` file and map what it wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from pinoise.data.images.decoding import ImageFiles
from pinoise.data.images.folders import ImageFolder
from pinoise.data.messages import cannot_read
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError
from pinoise.files import locked, replacing, write_text

VERSION = 3  # to be raised whenever images are decoded to other pixels, or this file writes another layout

_CHUNK = 1 << 24  # bytes decoded before they are written


class Decoded(NamedTuple):
    """The decoded images of every part, mapped, with the files that were left out as corrupt and notes on them."""

    arrays: list[npt.NDArray[np.uint8]]
    skipped: list[str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ImageCache:
    """The place of the decoded images of one folder under given options."""

    place: Path  # without an extension
    key: dict[str, Any]

    @classmethod
    def of(cls, folder: ImageFolder, options: ReadOptions, *, cache: Path) -> ImageCache:
        """Return the place, which depends on folder and options, and the key, which depends on the files too."""
        root = folder.root.resolve()
        size = options.height_and_width
        chosen = {"size": size and list(size), "color": options.color, "corrupt": options.corrupt}
        about = json.dumps([VERSION, str(root), chosen])
        place = cache / f"{root.name or 'images'}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"
        return cls(place, {"version": VERSION, "folder": str(root), "options": chosen, "files": _checksum(folder)})

    def read(self) -> Decoded | None:
        """Return what is kept; None if there is nothing, or only what was made from other files."""
        try:
            about: dict[str, Any] = json.loads(self._path("json").read_text(encoding="utf-8"))
            if about["key"] != self.key:
                return None
            shapes = about["shapes"]
            decoded = Decoded(self._mapped(len(shapes)), about["skipped"], tuple(about["notes"]))
        except (OSError, ValueError, KeyError, TypeError, EOFError):  # absent, cut off or written by someone else
            return None
        return decoded if [list(array.shape) for array in decoded.arrays] == shapes else None

    @contextmanager
    def locked(self, *, progress: bool = False) -> Iterator[None]:
        """Let one process at a time into the block, in which it reads once more and writes if there is nothing yet."""
        waiting = f"waiting for another process, which decodes the images of {self.key['folder']}"
        with ExitStack() as held:
            try:
                self.place.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(self.place, waiting=waiting if progress else None))
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    def write(
        self, parts: Sequence[ImageFiles], skipped: list[str], notes: tuple[str, ...], *, done: Callable[[int], object]
    ) -> list[npt.NDArray[np.uint8]]:
        """Decode all images and return them mapped; ``done`` is called with the number of images just written."""
        try:
            self._path("json").unlink(missing_ok=True)
            for part, images in enumerate(parts):
                with replacing(self._path(f"{part}.npy")) as temporary, temporary.open("xb") as stream:
                    _write_array(stream, images, done)
            shapes = [list(images.shape) for images in parts]
            about = {"key": self.key, "shapes": shapes, "skipped": skipped, "notes": notes}
            write_text(self._path("json"), json.dumps(about))
            return self._mapped(len(parts))
        except OSError as error:
            raise self._unwritable(error) from error

    def _mapped(self, parts: int) -> list[npt.NDArray[np.uint8]]:
        return [np.load(self._path(f"{part}.npy"), mmap_mode="r") for part in range(parts)]

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
                raise cannot_read(folder.root / name, error) from error
            digest.update(json.dumps([name, state.st_size, state.st_mtime_ns]).encode())
    return digest.hexdigest()


def _write_array(stream: BinaryIO, images: ImageFiles, done: Callable[[int], object]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    rows = max(1, _CHUNK // int(np.prod(images.shape[1:])))
    for start in range(0, len(images), rows):
        pixels = images[start : start + rows]
        stream.write(pixels.tobytes())
        done(len(pixels))
