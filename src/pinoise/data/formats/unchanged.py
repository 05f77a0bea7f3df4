"""Files that are read more than once, and must not change meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pinoise.data.lazy import has_changed, state_of
from pinoise.data.messages import cannot_read
from pinoise.errors import UserError


@dataclass(frozen=True)
class FileState:
    """A file as it was when it was first looked at, by size and time of its last change."""

    path: Path
    size: int
    modified: int  # nanoseconds

    def check(self) -> None:
        """Raise an error if the file has changed since."""
        if states_of([self.path])[0] != self:
            raise self.changed()

    def changed(self) -> UserError:
        """Return the error for a file that has changed."""
        return has_changed(self.path)


def states_of(paths: Iterable[Path]) -> list[FileState]:
    """Return files as they are now.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("a")
    ...     (state,) = states_of([path])
    ...     _ = path.write_text("ab")
    ...     state == states_of([path])[0]
    False
    """
    states = []
    for path in paths:
        try:
            states.append(FileState(path, *state_of(path)))
        except OSError as error:
            raise cannot_read(path, error) from error
    return states
