"""Files of an archive unpacked into the cache, for sets that are mapped because they are larger than memory may be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pinoise.data.formats.archives import GIB, members
from pinoise.errors import UserError
from pinoise.files import replacing

_LIMIT = 8 * GIB


def unpacked(archive: Path, names: Sequence[str], *, cache: Path) -> Path:
    """Return the folder in the cache that holds these files of an archive; they are unpacked once.

    A file is written under a temporary name and renamed when it is complete. A record of the archive's size and time of
    change is kept for each, so that files of another archive are not taken for these.
    """
    folder = cache / "unpacked" / archive.name.split(".")[0]
    state = archive.stat()
    record = json.dumps([archive.name, state.st_size, state.st_mtime_ns])
    missing = {name for name in names if not _is_kept(folder / name, record)}
    if not missing:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for member, stream in members(archive, "*", limit=_LIMIT):
            name = Path(member).name
            if name not in missing:
                continue
            _record(folder / name).unlink(missing_ok=True)
            with replacing(folder / name) as temporary, temporary.open("xb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
            missing.discard(name)
            _record(folder / name).write_text(record, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot unpack {archive.name} into the cache folder {folder} ({error.strerror or error}): set "
            "PINOISE_CACHE to a folder that can be written and has room."
        ) from error
    if missing:
        raise UserError(f"{archive} holds no file {sorted(missing)[0]!r}: get the archive again from its publisher.")
    return folder


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.source")


def _is_kept(path: Path, record: str) -> bool:
    return path.is_file() and _record(path).is_file() and _record(path).read_text(encoding="utf-8") == record
