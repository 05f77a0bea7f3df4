"""What every image file of a folder holds, remembered in the cache, so that unchanged files are not opened again.

Each folder has one JSON file. It is a convenience: where it cannot be read or written, all files are inspected again.
A file with a problem is inspected every time, because the cause may lie elsewhere, such as in the right to read it. Of
several processes one inspects and the others wait for what it finds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pinoise.data.images.decoding import Inspection, inspect_image
from pinoise.data.images.folders import ImageFolder
from pinoise.data.threads import in_threads
from pinoise.files import cache_folder, locked, read_sealed, write_sealed

VERSION = 2  # to be raised whenever an inspection finds something else in the same file

WORTH = 500  # files; fewer are inspected in a moment

_Known = dict[str, tuple[list[int], Inspection]]
"""By name: size and times of change of the file, and what it holds."""


def inspect_folder(folder: ImageFolder, *, progress: bool = False) -> dict[str, Inspection]:
    """Return what was found in every file, by name; ``progress`` shows a bar."""
    names = [name for part in folder.parts for name in part.names]
    if len(names) < WORTH:
        return _inspect(folder.root, names, progress)
    place = _place(folder.root)
    with _locked(place, f"waiting for another process, which checks the images of {folder.root}" if progress else None):
        known = _read(place)
        # Before the inspection, so that a file that changes meanwhile is inspected again.
        states = {name: _state(folder.root / name) for name in names}
        fresh = [name for name in names if name not in known or known[name][0] != states[name]]
        found = _inspect(folder.root, fresh, progress) if fresh else {}
        inspections = {name: found[name] if name in found else known[name][1] for name in names}
        if fresh or len(known) != len(names):
            sound = [name for name in names if inspections[name].problem is None and states[name]]
            _write(place, {name: (states[name], inspections[name]) for name in sound})
    return inspections


@contextmanager
def _locked(place: Path, waiting: str | None) -> Iterator[None]:
    """Let others wait for what one process finds, where a lock can be made."""
    with ExitStack() as held:
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(place, waiting=waiting))
        yield


def _inspect(root: Path, names: Sequence[str], progress: bool) -> dict[str, Inspection]:
    found = in_threads(lambda name: inspect_image(root / name), names, bar="checking" if progress else None)
    return dict(zip(names, found, strict=True))


def _state(path: Path) -> list[int]:
    try:
        state = path.stat()
    except OSError:  # the inspection says why
        return []
    # The second time is the system's own, which no program sets back.
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns]


def _place(root: Path) -> Path:
    root = root.resolve()
    name = f"{root.name or 'images'}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}.json"
    return cache_folder() / "inspections" / name


def _read(place: Path) -> _Known:
    try:
        stored = read_sealed(place)
        if stored["version"] != VERSION:
            return {}
        return {
            name: ([int(number) for number in state], Inspection((int(height), int(width)), bool(colour)))
            for name, (*state, height, width, colour) in stored["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, cut off or written by someone else
        return {}


def _write(place: Path, known: _Known) -> None:
    files = {name: [*state, *found.size, int(found.colour)] for name, (state, found) in known.items()}
    with suppress(OSError):
        write_sealed(place, {"version": VERSION, "files": files})
