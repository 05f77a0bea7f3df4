"""Decoded images kept on disk as arrays, so that they are decoded once and not in every epoch.

For each folder and each choice of options there is one ``.npy`` file for the training part, one for the test part if
there is one, and a ``.json`` file with what they were made from. That file is written last and removed first, so that
it never describes arrays that are not there. When the images or the arrays have changed since, the arrays are made
again. Both are known by their checksums, which costs one pass over the image files and one over the arrays each time
they are opened, at about 1.2 GB/s on each core. Of several processes one decodes; the others wait for it at the
``.lock`` file and read what it wrote.
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

from pinoise.data.formats.arrays import read_npy
from pinoise.data.images.decoding import ImageFiles, checksum
from pinoise.data.images.folders import ImageFolder
from pinoise.data.lazy import LazyArray, MappedRows
from pinoise.data.options import ReadOptions
from pinoise.data.threads import in_threads
from pinoise.errors import UserError
from pinoise.files import locked, read_sealed, replacing, sha256_of, write_sealed

VERSION = 4  # to be raised whenever images are decoded to other pixels, or this file writes another layout

_CHUNK = 1 << 24  # bytes decoded before they are written


class Decoded(NamedTuple):
    """The decoded images of every part, with the files that were left out as corrupt and notes on them."""

    arrays: list[LazyArray]
    skipped: list[str]
    notes: tuple[str, ...]


class KeptImages(MappedRows):
    """Decoded images of the cache, which remember the checksums of the files that they were decoded from."""

    def __init__(self, decoded: LazyArray, rows: npt.NDArray[np.int64], checksums: Sequence[bytes]) -> None:
        """Choose rows of ``decoded``; there is one checksum for each of its rows."""
        super().__init__(decoded, rows)
        self._decoded, self._checksums = decoded, checksums

    def take(self, rows: npt.NDArray[Any]) -> KeptImages:
        """Return these rows in the given order, without reading them."""
        return KeptImages(self._decoded, self._rows[rows], self._checksums)

    def file_checksums(self) -> Iterator[bytes]:
        """Yield the SHA-256 of the file of every row."""
        return (self._checksums[row] for row in self._rows.tolist())


@dataclass(frozen=True)
class ImageCache:
    """The place of the decoded images of one folder under given options."""

    place: Path  # without an extension
    key: dict[str, Any]
    parts: tuple[dict[str, bytes], ...]  # the SHA-256 of every file, by name

    @classmethod
    def of(cls, folder: ImageFolder, options: ReadOptions, *, cache: Path) -> ImageCache:
        """Return the place, which depends on folder and options, and the key, which depends on the files too."""
        root = folder.root.resolve()
        size = options.height_and_width
        chosen = {"size": size and list(size), "color": options.color, "corrupt": options.corrupt}
        about = json.dumps([VERSION, str(root), chosen])
        place = cache / f"{root.name or 'images'}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"
        paths = [folder.root / name for part in folder.parts for name in part.names]
        found = in_threads(checksum, paths)
        parts = tuple({name: next(found) for name in part.names} for part in folder.parts)
        files = hashlib.sha256(json.dumps([_in_hex(part) for part in parts]).encode()).hexdigest()
        return cls(place, {"version": VERSION, "folder": str(root), "options": chosen, "files": files}, parts)

    def read(self) -> Decoded | None:
        """Return what is kept; None if there is nothing, or only what was made from other files or altered since."""
        try:
            about = read_sealed(self._path("json"))
            if about["key"] != self.key or self._checksums() != about["checksums"]:
                return None
            return Decoded(self._arrays(about["skipped"]), about["skipped"], tuple(about["notes"]))
        except (OSError, ValueError, KeyError, TypeError):  # absent, cut off or written by someone else
            return None

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
    ) -> list[LazyArray]:
        """Decode all images and return them; ``done`` is called with the number of images just written."""
        try:
            self._path("json").unlink(missing_ok=True)
            for part, images in enumerate(parts):
                with replacing(self._path(f"{part}.npy")) as temporary, temporary.open("xb") as stream:
                    _write_array(stream, images, done)
            about = {"key": self.key, "checksums": self._checksums(), "skipped": skipped, "notes": notes}
            write_sealed(self._path("json"), about)
            return self._arrays(skipped)
        except OSError as error:
            raise self._unwritable(error) from error

    def _checksums(self) -> list[str]:
        return list(in_threads(sha256_of, [self._path(f"{part}.npy") for part in range(len(self.parts))]))

    def _arrays(self, skipped: Sequence[str]) -> list[LazyArray]:
        left_out, arrays = set(skipped), list[LazyArray]()
        for number, files in enumerate(self.parts):
            decoded = read_npy(self._path(f"{number}.npy")).train.x
            checksums = [found for name, found in files.items() if name not in left_out]
            if not isinstance(decoded, LazyArray) or len(decoded) != len(checksums):
                raise ValueError(f"{self._path(f'{number}.npy')} does not have a row for every file")
            arrays.append(KeptImages(decoded, np.arange(len(decoded)), checksums))
        return arrays

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"cannot keep decoded images in {self.place.parent} ({error.strerror or error}): choose another folder "
            "for the cache (--set data.cache=FOLDER), or none."
        )

    def _path(self, ending: str) -> Path:
        return self.place.with_name(f"{self.place.name}.{ending}")


def _in_hex(files: dict[str, bytes]) -> list[tuple[str, str]]:
    return [(name, found.hex()) for name, found in files.items()]


def _write_array(stream: BinaryIO, images: ImageFiles, done: Callable[[int], object]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": images.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    rows = max(1, _CHUNK // int(np.prod(images.shape[1:])))
    for start in range(0, len(images), rows):
        pixels = images[start : start + rows]
        stream.write(pixels.tobytes())
        done(len(pixels))
