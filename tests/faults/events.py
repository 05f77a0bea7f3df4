"""What happens to the files of a folder, as the system tells it, so that a process can be struck while it writes."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

# From sys/inotify.h.
_MODIFY, _CLOSED, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
_IS_FOLDER = 0x40000000
_ALL = _MODIFY | _CLOSED | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows


class Events:
    """The changes of files in a folder and in the folders that are made in it (Linux's inotify).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Events(Path(folder)) as events:
    ...     _ = Path(folder, "a").write_text("content")
    ...     events.read(seconds=1)
    ['a', 'a', 'a']
    """

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "inotify cannot be used")
        self._folders: dict[int, Path] = {}
        self._add(folder)

    def _add(self, folder: Path) -> None:
        number = self._libc.inotify_add_watch(self._file, os.fsencode(folder), _ALL)
        if number >= 0:  # else it is gone again
            self._folders[number] = folder
            with suppress(FileNotFoundError):  # as it may be now
                for inner in folder.iterdir():
                    if inner.is_dir():
                        self._add(inner)

    def read(self, *, seconds: float) -> list[str]:
        """Return the names of files that changed, each as often as it did, once one has or the time is over."""
        if not select.select([self._file], [], [], seconds)[0]:
            return []
        content, names = os.read(self._file, 1 << 16), list[str]()
        while content:
            number, mask, _, length = _HEAD.unpack_from(content)
            name = os.fsdecode(content[_HEAD.size :][:length].rstrip(b"\0"))
            content = content[_HEAD.size + length :]
            if mask & _IS_FOLDER and mask & _CREATE and number in self._folders:
                self._add(self._folders[number] / name)
            names.append(name)
        return names

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
