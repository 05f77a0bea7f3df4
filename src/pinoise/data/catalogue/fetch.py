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

from pinoise.data.disk import state_of
from pinoise.data.messages import cannot_read
from pinoise.errors import UserError
from pinoise.files import cache_folder, expanded, replacing, sha256_of, write_text, writing

logger = logging.getLogger(__name__)

_TIMEOUT = (15.0, 60.0)  # seconds to connect, and between two blocks
_BLOCK = 1 << 16

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


def data_folder() -> Path | None:
    """Return the folder that ``PINOISE_DATA`` names, or None."""
    folder = os.environ.get("PINOISE_DATA")
    return expanded(folder) if folder else None


def find(file: DataFile, *, cache: Path | None = None) -> tuple[DataFile, Path] | None:
    """Return the file, or the one found instead of it, and its path on this machine; None where it is not."""
    folders = (data_folder(), cache or cache_folder(), SYSTEM_FOLDER)
    places = ((each, folder / each.name) for folder in folders if folder for each in file.wrappings)
    return next(((each, path) for each, path in places if (path.is_dir() if each.folder else path.is_file())), None)


def obtain(
    file: DataFile, *, cache: Path | None = None, progress: bool = False, download: bool = True
) -> tuple[Path, str | None]:
    """Return the path of a verified file and its SHA-256 where one is known; it is downloaded if need be."""
    folder = cache or cache_folder()
    found = find(file, cache=folder)
    if found is not None:
        candidate, path = found
        known = candidate.sha256 or _recorded(path)
        verify(path, known, repacked=candidate.repacked)
        return path, known
    if file.url is None or not download:
        raise _missing(file, folder)
    path = folder / file.name
    logger.info("downloading %s to %s", file.url, path)
    sha256 = _download(file.url, path, expected=file.sha256, progress=progress)
    if file.sha256 is None:
        record = path.with_name(path.name + ".sha256")
        write_text(record, f"{sha256}  {path.name}\n")
        logger.info("no checksum of %s is published: recorded sha256 %s in %s", path.name, sha256, record)
    return path, sha256


def verify(path: Path, sha256: str | None, *, repacked: tuple[str, ...] = ()) -> None:
    """Raise an error unless the file has a checksum that is known; an unchanged file is read once per process."""
    if sha256 is None:
        logger.info("no checksum of %s is known, so it was not verified", path)
        return
    try:
        found = _checksum(path, *state_of(path))
    except OSError as error:
        raise cannot_read(path, error) from error
    if found not in (sha256, *repacked):
        raise UserError(
            f"{path} is not the file expected: its sha256 is {found} and should be {sha256}; "
            "remove it or put the right file in its place."
        )


@cache
def _checksum(path: Path, size: int, modified: int) -> str:
    return sha256_of(path)


def _recorded(path: Path) -> str | None:
    """Return the checksum recorded beside a cached file at its first download."""
    record = path.with_name(path.name + ".sha256")
    return record.read_text(encoding="ascii", errors="replace")[:64] if record.is_file() else None


def _missing(file: DataFile, cache: Path) -> UserError:
    folder = data_folder()
    now = f"now {folder}" if folder is not None else "not set now"
    names = " or ".join(candidate.name for candidate in (file, *file.instead))
    advice = f"set PINOISE_DATA to the folder that holds {names} ({now})"
    if file.url is not None:
        return UserError(f"{file.name} is not in {cache}: allow its download from {file.url}, or {advice}.")
    return UserError(f"{file.name} was not found and has no download address: {file.hint}{advice}.")


def _download(url: str, path: Path, *, expected: str | None, progress: bool) -> str:
    """Download ``url`` to ``path`` and return its SHA-256.

    The bytes go to a temporary file in the same folder, which takes its name only when it is complete and verified,
    and is removed otherwise.
    """
    import pooch
    import requests

    download = pooch.HTTPDownloader(
        progressbar=progress,
        chunk_size=_BLOCK,
        timeout=_TIMEOUT,
        # Compression in transit would be undone on the way, and a .gz file would lose its checksum.
        headers={"Accept-Encoding": "identity"},
    )
    with writing(path, advice="set PINOISE_CACHE to a folder that can be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            try:
                download(url, str(temporary), None)
            except requests.RequestException as error:
                answered = f"the server answered with an error ({error})"
                silent = "the server cannot be reached, or the connection broke off before the end of the file"
                raise UserError(
                    f"cannot download {url}: {answered if isinstance(error, requests.HTTPError) else silent}; "
                    f"try again, or get {path.name} by hand and set PINOISE_DATA to its folder."
                ) from error
            sha256 = sha256_of(temporary)
            _check_content(url, temporary, sha256, expected)
    return sha256


def _check_content(url: str, target: Path, sha256: str, expected: str | None) -> None:
    """Raise an error for another file than the one expected, or of another format where no checksum is known."""
    if expected not in (None, sha256):
        raise UserError(
            f"the download of {url} has sha256 {sha256} and should have {expected}: it was discarded; "
            "try again, or get the file from its publisher."
        )
    magic = _MAGIC.get(target.suffix, b"")
    with target.open("rb") as stream:
        start = stream.read(len(magic))
    if start != magic:
        raise UserError(f"the download of {url} begins with {start!r}, not like such a file: it was discarded.")
