"""Where the files of a data set come from: a folder of the user's, the cache, the system's, or their publisher.

The order is ``PINOISE_DATA``, then the cache (``PINOISE_CACHE``, or the platform's folder for caches), then the folder
where Debian's packages put data sets, then a download into the cache. A file whose checksum is known is verified once
per process. For a file whose publisher states no checksum, the first download records it beside the cached file and
later loads are held to that record.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pinoise.data.formats.opened import state_of
from pinoise.errors import UserError, damage_named
from pinoise.files import cache_folder, expanded, replacing, sha256_of, write_text, writing

logger = logging.getLogger(__name__)

# First bytes by file name, so that an error page sent in place of a file never reaches the cache.
_MAGIC = {".zip": b"PK", ".gz": b"\x1f\x8b", ".bz2": b"BZh"}

SYSTEM_FOLDER = Path("/usr/share/datasets")
"""Where Debian's packages such as ``dataset-fashion-mnist`` put their files."""


@dataclass(frozen=True)
class DataFile:
    """A file of a data set as its publisher names it.

    ``sha256`` is None where no checksum is known. ``url`` is None where there is no direct link; ``hint`` then says
    where to get the file. ``instead`` lists files with the same content in another wrapping, among them a ``folder``
    that an archive unpacks to. ``repacked`` are the SHA-256 of the same content compressed by others.
    """

    name: str
    sha256: str | None = None
    url: str | None = None
    hint: str = ""
    instead: tuple[DataFile, ...] = ()
    folder: bool = False
    repacked: tuple[str, ...] = ()

    @property
    def wrappings(self) -> tuple[DataFile, ...]:
        """The file and those that do instead of it, folders first: what is unpacked need not be unpacked again."""
        return tuple(sorted((self, *self.instead), key=lambda file: not file.folder))


def find(file: DataFile, *, cache: Path | None = None) -> tuple[DataFile, Path] | None:
    """Return the file, or the one found instead of it, and its path on this machine; None where it is not."""
    mine = os.environ.get("PINOISE_DATA")
    folders = (*([expanded(mine)] if mine else []), cache or cache_folder(), SYSTEM_FOLDER)
    places = ((each, folder / each.name) for folder in folders for each in file.wrappings)
    return next(((each, path) for each, path in places if (path.is_dir() if each.folder else path.is_file())), None)


def obtain(
    file: DataFile, *, cache: Path | None = None, progress: bool = False, download: bool = True
) -> tuple[Path, str | None]:
    """Return the path of a verified file and its SHA-256 where one is known; it is downloaded if need be."""
    folder = cache or cache_folder()
    found, path = find(file, cache=folder) or (None, folder / file.name)
    record = path.with_name(f"{path.name}.sha256")
    if found is not None:
        known = found.sha256 or (record.read_text(errors="replace")[:64] if record.is_file() else None)
        verify(path, known, repacked=found.repacked)
        return path, known
    if file.url is None or not download:
        now = os.environ.get("PINOISE_DATA") or "not set"
        how = file.hint if file.url is None else f"allow its download from {file.url}, or "
        names = " or ".join(each.name for each in (file, *file.instead))
        raise UserError(
            f"{path} was not found: {how}set PINOISE_DATA, which is {now} now, to the folder that holds {names}."
        )
    logger.info("downloading %s to %s", file.url, path)
    sha256 = _download(file.url, path, expected=file.sha256, progress=progress)
    if file.sha256 is None:
        write_text(record, f"{sha256}  {path.name}\n")
        logger.info("no checksum of %s is published: recorded sha256 %s in %s", path.name, sha256, record)
    return path, sha256


def verify(path: Path, sha256: str | None, *, repacked: tuple[str, ...] = ()) -> None:
    """Raise an error unless the file has a checksum that is known; an unchanged file is read once per process."""
    if sha256 is None:
        return
    with damage_named(path, OSError):
        found = _checksum(path, *state_of(path))
    if found not in (sha256, *repacked):
        raise UserError(
            f"{path} is not the file expected: its sha256 is {found} and should be {sha256}; "
            "remove it or put the right file in its place."
        )


@cache
def _checksum(path: Path, size: int, modified: int) -> str:
    return sha256_of(path)


def _download(url: str, path: Path, *, expected: str | None, progress: bool) -> str:
    """Download ``url`` to ``path`` and return its SHA-256.

    The bytes go to a temporary file in the same folder, which takes its name only when it is complete and verified,
    and is removed otherwise.
    """
    import pooch
    import requests

    # Compression in transit would be undone on the way, and a .gz file would lose its checksum.
    headers, seconds = {"Accept-Encoding": "identity"}, (15.0, 60.0)  # to connect, and between two blocks
    download = pooch.HTTPDownloader(progressbar=progress, chunk_size=1 << 16, timeout=seconds, headers=headers)
    with writing(path, advice="set PINOISE_CACHE to a folder that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            try:
                download(url, str(temporary), None)
            except requests.RequestException as error:
                reason = "the server cannot be reached, or the connection broke off before the end of the file"
                if isinstance(error, requests.HTTPError):
                    reason = f"the server answered with an error ({error})"
                advice = f"try again, or get {path.name} by hand and set PINOISE_DATA to its folder"
                raise UserError(f"cannot download {url}: {reason}; {advice}.") from error
            sha256 = sha256_of(temporary)
            with temporary.open("rb") as stream:
                start = stream.read(3)
            wrong = None if expected in (None, sha256) else f"has sha256 {sha256} and should have {expected}"
            if expected is None and not start.startswith(_MAGIC.get(path.suffix, b"")):
                wrong = f"begins with {start!r}, not like such a file"
            if wrong is not None:
                raise UserError(f"the download of {url} {wrong}: it was discarded; try again, or ask its publisher.")
    return sha256
