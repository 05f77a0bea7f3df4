"""Where the files of a data set come from: a folder of the user's, the cache, the system's, or their publisher.

The order is ``PINOISE_DATA``, then the cache (``PINOISE_CACHE``, or the platform's folder for caches), then the folder
where Debian's packages put data sets, then a download into the cache. A file whose checksum is known is verified once
per process. For a file whose publisher states no checksum, the first download records it beside the cached file and
later loads are held to that record.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

from pinoise.data.messages import cannot_read
from pinoise.errors import UserError
from pinoise.files import cache_folder, expanded, replacing, sha256_of, write_text

logger = logging.getLogger(__name__)

_TIMEOUT = (15.0, 60.0)  # seconds to connect, and between two blocks
_BLOCK = 1 << 16

# First bytes by file name, so that an error page sent in place of a file never reaches the cache.
_MAGIC = {".zip": b"PK", ".gz": b"\x1f\x8b", ".bz2": b"BZh"}

SYSTEM_FOLDER = Path("/usr/share/datasets")
"""Where Debian's packages such as ``dataset-fashion-mnist`` put their files."""

_SHA256 = re.compile(r"[0-9a-f]{64}\b")

_verified: set[tuple[Path, int, int, str]] = set()


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

    def __post_init__(self) -> None:
        for sha256 in (self.sha256, *self.repacked):
            if sha256 is not None and _SHA256.fullmatch(sha256) is None:
                raise ValueError(f"{self.name}: {sha256!r} is not a sha256")

    @property
    def wrappings(self) -> tuple[DataFile, ...]:
        """The file and those that do instead of it, folders first: what is unpacked need not be unpacked again."""
        return tuple(sorted((self, *self.instead), key=lambda file: not file.folder))

    def is_at(self, path: Path) -> bool:
        """Whether there is such a file, or such a folder."""
        return path.is_dir() if self.folder else path.is_file()


def data_folder() -> Path | None:
    """Return the folder that ``PINOISE_DATA`` names, or None."""
    folder = os.environ.get("PINOISE_DATA")
    return expanded(folder) if folder else None


def find(file: DataFile, *, cache: Path | None = None) -> tuple[DataFile, Path] | None:
    """Return the file, or the one found instead of it, and its path on this machine; None where it is not."""
    for folder in (data_folder(), cache or cache_folder(), SYSTEM_FOLDER):
        if folder is None:
            continue
        for candidate in file.wrappings:
            path = folder / candidate.name
            if candidate.is_at(path):
                return candidate, path
    return None


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
        record = _record(path)
        write_text(record, f"{sha256}  {path.name}\n")
        logger.info("no checksum of %s is published: recorded sha256 %s in %s", path.name, sha256, record)
    return path, sha256


def verify(path: Path, sha256: str | None, *, repacked: tuple[str, ...] = ()) -> None:
    """Raise an error unless the file has a checksum that is known; an unchanged file is read once per process."""
    if sha256 is None:
        logger.info("no checksum of %s is known, so it was not verified", path)
        return
    state = path.stat()
    key = (path.resolve(), state.st_size, state.st_mtime_ns, sha256)
    if key in _verified:
        return
    try:
        found = sha256_of(path)
    except OSError as error:
        raise cannot_read(path, error) from error
    if found not in (sha256, *repacked):
        raise UserError(
            f"{path} is not the file expected: its sha256 is {found} and should be {sha256}; "
            "remove it or put the right file in its place."
        )
    _verified.add(key)


def _record(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _recorded(path: Path) -> str | None:
    """Return the checksum recorded beside a cached file at its first download."""
    record = _record(path)
    if not record.is_file():
        return None
    found = _SHA256.match(record.read_text(encoding="ascii", errors="replace"))
    if found is None:
        raise UserError(f"{record} does not begin with a sha256: remove it and {path.name} to start again.")
    return found.group()


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

    answers: list[requests.Response] = []  # redirects first, the file last
    download = pooch.HTTPDownloader(
        progressbar=progress,
        chunk_size=_BLOCK,
        timeout=_TIMEOUT,
        # Compression in transit would be undone on the way, and a .gz file would lose its checksum.
        headers={"Accept-Encoding": "identity"},
        hooks={"response": lambda answer, *_, **__: answers.append(answer)},
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            download(url, str(temporary), None)
            sha256 = sha256_of(temporary)
            if expected is not None and sha256 != expected:
                raise UserError(
                    f"the download of {url} has sha256 {sha256} and should have {expected}: it was discarded; "
                    "try again, or get the file from its publisher."
                )
            length = answers[-1].headers.get("Content-Length")
            _check_content(url, temporary, length=length, magic=_MAGIC.get(path.suffix, b""))
    except requests.exceptions.RequestException as error:
        reasons = {
            requests.exceptions.HTTPError: f"the server answered with an error ({error})",
            requests.exceptions.Timeout: "the server did not answer in time",
            requests.exceptions.ChunkedEncodingError: "the connection broke off before the end of the file",
            requests.exceptions.RequestException: "the server cannot be reached or closed the connection",
        }
        reason = next(reason for kind, reason in reasons.items() if isinstance(error, kind))
        raise UserError(
            f"cannot download {url}: {reason}; try again, or get {path.name} by hand and set PINOISE_DATA to its "
            "folder."
        ) from error
    except OSError as error:
        raise UserError(
            f"cannot write {path.name} in the cache folder {path.parent} ({error.strerror or error}): "
            "set PINOISE_CACHE to a folder that can be written."
        ) from error
    return sha256


def _check_content(url: str, target: Path, *, length: str | None, magic: bytes) -> None:
    """Raise an error for a file cut short or of another format, which matters where no checksum is known."""
    size = target.stat().st_size
    if length is not None and size != int(length):
        raise UserError(f"the download of {url} gave {size} of {length} bytes and was discarded: try again.")
    with target.open("rb") as stream:
        start = stream.read(len(magic))
    if start != magic:
        raise UserError(f"the download of {url} begins with {start!r}, not like such a file: it was discarded.")
