"""Files of caches, written aside and renamed once they are complete and on disk."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends without an error; others may read it as any new file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_aside(Path(folder, "a")) as stream:
    ...         _ = stream.write(b"content")
    ...     Path(folder, "a").read_bytes(), len(os.listdir(folder))
    (b'content', 1)
    """
    # Not by mkstemp, whose files nobody else may read.
    temporary = path.with_name(f"{path.name}{secrets.token_hex(8)}.part")
    stream = temporary.open("xb")
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
