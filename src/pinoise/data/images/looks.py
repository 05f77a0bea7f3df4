"""A first look at every file of a folder, remembered in the cache, so that unchanged files are not looked at again.

For each folder there is one JSON file. It is a convenience alone: where it cannot be read or written, files are looked
at again. Files with a problem always are, as the problem may lie elsewhere, such as in the right to read them. Of
several processes one looks and the others wait for what it finds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pinoise.data.aside import alone, written_aside
from pinoise.data.images.decoding import Look, in_threads, look
from pinoise.data.images.folders import ImageFolder

VERSION = 1
"""To be raised whenever a look finds something else in the same file."""

WORTH = 500  # files; fewer are looked at in a moment

_Known = dict[str, list[int]]
"""By name: size and time of change of the file, height and width of the image, and whether it has colour."""


def look_at(folder: ImageFolder, *, told: str | None = None) -> dict[str, Look]:
    """Return what was found in every file, by name; ``told`` names a progress bar."""
    names = [name for part in folder.parts for name in part.names]
    if len(names) < WORTH:
        return _look(folder.root, names, told=told)
    place = _place(folder.root)
    with _alone(place, told=f"waiting for another process, which checks the images of {folder.root}" if told else None):
        known = _read(place)
        # Before the look, so that a file that changes meanwhile is looked at again.
        states = {name: _state(folder.root / name) for name in names}
        fresh = [name for name in names if name not in known or known[name][:2] != states[name]]
        found = _look(folder.root, fresh, told=told) if fresh else {}
        looks = {name: found[name] if name in found else _remembered(known[name]) for name in names}
        if fresh or len(known) != len(names):
            sound = [name for name in names if looks[name].problem is None and states[name]]
            _write(place, {name: [*states[name], *_plain(looks[name])] for name in sound})
    return looks


@contextmanager
def _alone(place: Path, *, told: str | None) -> Iterator[None]:
    """Let others wait for what one process finds, where there can be a lock."""
    with ExitStack() as held:
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(alone(place, told=told))
        yield


def _look(root: Path, names: Sequence[str], *, told: str | None) -> dict[str, Look]:
    return dict(zip(names, in_threads(lambda name: look(root / name), names, told=told), strict=True))


def _state(path: Path) -> list[int]:
    try:
        state = path.stat()
    except OSError:  # the look says why
        return []
    return [state.st_size, state.st_mtime_ns]


def _plain(found: Look) -> list[int]:
    return [*found.size, int(found.colour)]


def _remembered(values: list[int]) -> Look:
    _, _, height, width, colour = values
    return Look((height, width), bool(colour))


def _place(root: Path) -> Path:
    from pinoise.data.catalogue.fetch import cache_folder  # which imports what imports this

    root = root.resolve()
    name = f"{root.name or 'images'}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}.json"
    return cache_folder() / "looks" / name


def _read(place: Path) -> _Known:
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        known: _Known = stored["files"] if stored["version"] == VERSION else {}
        sound = all(len(values) == 5 and all(isinstance(value, int) for value in values) for values in known.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, cut off or written by someone else
        return {}
    return known if sound else {}


def _write(place: Path, known: _Known) -> None:
    with suppress(OSError), written_aside(place) as stream:
        stream.write(json.dumps({"version": VERSION, "files": known}).encode())
