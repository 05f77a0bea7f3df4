"""Converted tables on disk: one file of records, one of labels and groups, and what they were made from.

The ``.json`` file has checksums of the others; it is written last and removed first, so that it never describes rows
that are not there. Every file is written under another name, flushed and renamed: a process that is killed leaves no
half cache, and what it left is removed by the next one. Of several processes one converts, and the others wait for it
at the ``.lock`` file. When the source has changed by size or time, the table is converted again.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pinoise.data.dataset import Part
from pinoise.data.formats.arrays import open_npz
from pinoise.data.formats.unchanged import states_of
from pinoise.data.lazy import FileRows
from pinoise.data.source import Source
from pinoise.data.streaming.records import Field, Layout, Records, smallest
from pinoise.errors import UserError
from pinoise.files import cache_folder, locked, read_sealed, replaced_by, replacing, sha256_of, write_sealed

VERSION = 1  # to be raised whenever tables are converted to other records
_NAME = 32  # characters of the source's name in those of files, which a file system limits to about 255 bytes

Floats = npt.NDArray[np.float64]
K = TypeVar("K")


class Piece(NamedTuple):
    """Converted rows that follow each other, with labels and groups where there are any."""

    x: Floats
    y: npt.NDArray[Any] | None = None
    groups: npt.NDArray[Any] | None = None


class Kept(NamedTuple):
    """A converted table, and what else was stored with it."""

    part: Part
    about: dict[str, Any]


@dataclass(frozen=True)
class StreamCache:
    """The place of a table that is converted in one way."""

    place: Path  # without an extension
    key: dict[str, Any]
    where: str  # what messages call the table

    @classmethod
    def of(cls, source: Source, how: object, *, folder: Path | None) -> StreamCache:
        """Return the place of a table.

        Args:
            source: the table.
            how: plain values that decide how it is converted.
            folder: where converted tables are kept; the user's folder for caches if None.
        """
        states = [[str(state.path.resolve()), state.size, state.modified] for state in states_of(source.files)]
        # The folder that was named decides which folders are columns, so the files alone do not say what is read.
        about = json.dumps([VERSION, str(source.path.resolve()), [file for file, *_ in states], how], sort_keys=True)
        folder = cache_folder() / "streamed" if folder is None else folder
        name = source.name[:_NAME] or "table"
        place = folder / f"{name}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"
        return cls(place, {"version": VERSION, "files": states, "how": json.loads(json.dumps(how))}, source.where)

    def kept_or(self, convert: Callable[[], K]) -> Kept | K:
        """Return what is kept, or what ``convert`` writes now, in one process at a time."""
        kept = self.read()
        if kept is not None:
            return kept
        with self.locked():
            return self.read() or convert()

    def read(self) -> Kept | None:
        """Return what is kept; None if there is nothing, or only what was made from other files or altered since."""
        try:
            about = read_sealed(self._path("json"))
            if about["key"] != self.key or self._checksums() != about["checksums"]:
                return None
            return self._kept(about)
        except (OSError, ValueError, KeyError, TypeError):  # absent, cut off or written by someone else
            return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one process at a time into the block, in which it reads once more and writes if there is nothing yet."""
        with ExitStack() as held:
            try:
                self.place.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(self.place, waiting=f"waiting for another process, which reads {self.where}"))
                for file in self.place.parent.iterdir():  # what killed processes left
                    if (replaced_by(file.name) or "").startswith(f"{self.place.name}."):
                        file.unlink(missing_ok=True)
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield the path of a file that is removed afterwards. A killed process leaves it to the next one to remove."""
        path = self.place.with_name(f".{self.place.name}.scratch.{secrets.token_hex(8)}.part")
        try:
            yield path
        except (UserError, MemoryError):
            raise
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            path.unlink(missing_ok=True)

    def check_room(self, rows: int, layout: Layout) -> None:
        """Raise an error if the disk has no room for so many rows."""
        needed, free = rows * layout.width, shutil.disk_usage(self.place.parent).free
        if needed > free:
            raise UserError(
                f"{self.place.parent} has {free / 1e9:.1f} GB free, but the rows of {self.where} take "
                f"{needed / 1e9:.1f} GB: choose another folder for them with --set data.cache=FOLDER."
            )

    def write(self, pieces: Iterable[Piece], layout: Layout, *, rows: int) -> None:
        """Write the rows, labels and groups; ``finish`` must follow."""
        self.check_room(rows, layout)
        labels: list[npt.NDArray[Any]] = []
        groups: list[npt.NDArray[Any]] = []
        try:
            self._path("json").unlink(missing_ok=True)
            with replacing(self._path("rows")) as temporary, temporary.open("xb") as stream:
                for piece in pieces:
                    stream.write(layout.pack(piece.x).data)
                    if piece.y is not None:
                        labels.append(smallest(piece.y) if piece.y.dtype.kind == "i" else piece.y)
                    if piece.groups is not None:
                        groups.append(smallest(piece.groups))
            found = {name: np.concatenate(parts) for name, parts in (("y", labels), ("groups", groups)) if parts}
            with replacing(self._path("labels")) as temporary, temporary.open("xb") as stream:
                np.savez(stream, **found)  # type: ignore[arg-type]
        except UserError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error

    def finish(self, layout: Layout, *, rows: int, **more: Any) -> Kept:
        """Seal what was written with what else is to be kept, and return it."""
        try:
            about = {
                "key": self.key,
                "rows": rows,
                "fields": [list(field) for field in layout.fields],
                "checksums": self._checksums(),
                **more,
            }
            write_sealed(self._path("json"), json.loads(json.dumps(about)))
            return self._kept(about)
        except UserError:
            raise
        except OSError as error:
            raise self._unwritable(error) from error

    @property
    def note(self) -> str:
        """What users are told about the place of the rows."""
        size = self._path("rows").stat().st_size / 1e9
        return f"read in pieces (data.stream): {size:.2g} GB of rows stay on disk, in {self.place.parent} (data.cache)"

    def _kept(self, about: dict[str, Any]) -> Kept:
        fields = (Field(dtype, tuple(features), is_code) for dtype, features, is_code in about["fields"])
        layout = Layout(tuple(fields))
        file = FileRows(self._path("rows"), (about["rows"], layout.width), np.dtype(np.uint8))
        with open_npz(self._path("labels")) as arrays:
            y, groups = arrays.get("y"), arrays.get("groups")
        return Kept(Part(Records(file, layout, checksum=about["checksums"][0]), y, groups), about)

    def _checksums(self) -> list[str]:
        return [sha256_of(self._path(ending)) for ending in ("rows", "labels")]

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"cannot keep the rows of {self.where} in {self.place.parent} ({error.strerror or error}): make room, or "
            "choose another folder with --set data.cache=FOLDER."
        )

    def _path(self, ending: str) -> Path:
        return self.place.with_name(f"{self.place.name}.{ending}")
