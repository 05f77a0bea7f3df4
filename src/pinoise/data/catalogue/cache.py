"""What the cache keeps of data sets beside the downloads: conversions and unpacked files.

A conversion is one ``.npz`` per set, so that text and pictures are parsed once and not at every load. It carries the
checksums of the files it was made from (size and time of change where no checksum is known), the version of the
readers and a checksum of its own; it is made again when these differ, or when the file is damaged.

Files of an archive are unpacked for sets that may be larger than memory. Each is compared with its checksum when the
set is loaded, in a pass over the file at about 1.2 GB/s.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Part, Samples, fingerprint_parts
from pinoise.data.formats.archives import GIB, members
from pinoise.data.formats.arrays import open_npz
from pinoise.data.formats.raw import Array
from pinoise.errors import UserError
from pinoise.files import read_sealed, replacing, sha256_of, write_sealed

logger = logging.getLogger(__name__)

VERSION = 2  # to be raised whenever a reader gives other values for the same files, or this file writes another layout

_UNPACKED_LIMIT = 8 * GIB
_TEXTS = ("feature_names", "class_names", "notes")  # of a data set, beside its arrays


def converted(
    name: str, sources: Iterable[tuple[Path, str | None]], convert: Callable[[], Dataset], *, cache: Path
) -> Dataset:
    """Return the kept conversion of a set, or make it and keep it; ``sources`` are its files with their SHA-256."""
    path = cache / "converted" / f"{name}.npz"
    key = _key(sources)
    complaint: tuple[str, ...] = ()
    if path.is_file():
        try:
            kept = _read(path, name, key)
        except UserError as error:
            logger.warning("%s", error)
            complaint = (f"the conversion kept in {path} was damaged and was made again",)
        else:
            if kept is not None:
                return replace(kept, notes=(*kept.notes, f"read from the conversion kept in {path}"))
    data = convert()
    try:
        _write(path, key, data)
    except OSError as error:  # a cache is a convenience
        logger.warning("cannot keep the conversion of %s in %s: %s", name, path, error)
    return replace(data, notes=(*data.notes, *complaint))


def _key(sources: Iterable[tuple[Path, str | None]]) -> str:
    files = []
    for path, sha256 in sources:
        state = path.stat()
        files.append([path.name, sha256 or [state.st_size, state.st_mtime_ns]])
    return json.dumps([VERSION, files])


def _read(path: Path, name: str, key: str) -> Dataset | None:
    """Return a conversion, None if it was made from other files; a damaged one is an error."""
    with open_npz(path) as arrays:
        about: dict[str, Any] = json.loads(str(arrays["about"]))
        if about["key"] != key:
            return None
        test = _read_part(arrays, "test") if about["test"] else None
        texts: dict[str, Any] = {field: None if about[field] is None else tuple(about[field]) for field in _TEXTS}
        data = Dataset(name, _read_part(arrays, "train"), test, **texts)
        if _seal(data) != about["seal"]:
            raise UserError(f"{path} is not as it was written.")
        return data


def _write(path: Path, key: str, data: Dataset) -> None:
    texts = {field: getattr(data, field) for field in _TEXTS}
    about = {"key": key, "seal": _seal(data), "test": data.test is not None, **texts}
    arrays = {"about": np.array(json.dumps(about)), **_part_arrays(data.train, "train")}
    if data.test is not None:
        arrays |= _part_arrays(data.test, "test")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]


def _seal(data: Dataset) -> str:
    """Return a checksum of all arrays and texts of a set."""
    return json.dumps([fingerprint_parts(data), *(getattr(data, field) for field in _TEXTS)])


def _part_arrays(part: Part, side: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    x = part.x
    if isinstance(x, sp.csr_array):
        arrays |= {f"{side}_data": x.data, f"{side}_indices": x.indices, f"{side}_indptr": x.indptr}
        arrays[f"{side}_shape"] = np.array(x.shape)
    else:
        arrays[f"{side}_x"] = np.asarray(x)
    for name, values in (("y", part.y), ("groups", part.groups)):
        if values is not None:
            arrays[f"{side}_{name}"] = values
    return arrays


def _read_part(arrays: Mapping[str, Array], side: str) -> Part:
    x: Samples
    if f"{side}_shape" in arrays:
        rows, columns = arrays[f"{side}_shape"].tolist()
        pieces = (arrays[f"{side}_data"], arrays[f"{side}_indices"], arrays[f"{side}_indptr"])
        x = sp.csr_array(pieces, shape=(rows, columns))
        x.check_format(full_check=True)
    else:
        x = arrays[f"{side}_x"]
    return Part(x, arrays.get(f"{side}_y"), arrays.get(f"{side}_groups"))


def unpacked(archive: Path, names: Sequence[str], *, cache: Path) -> Path:
    """Return the folder in the cache that holds these files of an archive; they are unpacked once.

    A file is written under a temporary name and renamed when it is complete. A record of the archive's size and time of
    change and of the file's own checksum is kept for each, so that no other file is taken for it.
    """
    folder = cache / "unpacked" / archive.name.split(".")[0]
    state = archive.stat()
    record = [archive.name, state.st_size, state.st_mtime_ns]
    missing = {name for name in names if not _is_kept(folder / name, record)}
    if not missing:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for member, stream in members(archive, "*", limit=_UNPACKED_LIMIT):
            name = Path(member).name
            if name not in missing:
                continue
            _origin_of(folder / name).unlink(missing_ok=True)
            with replacing(folder / name) as temporary, temporary.open("xb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)
            missing.discard(name)
            write_sealed(_origin_of(folder / name), {"origin": [*record, sha256_of(folder / name)]})
    except OSError as error:
        raise UserError(
            f"cannot unpack {archive.name} into the cache folder {folder} ({error.strerror or error}): set "
            "PINOISE_CACHE to a folder that can be written and has room."
        ) from error
    if missing:
        raise UserError(f"{archive} holds no file {sorted(missing)[0]!r}: get the archive again from its publisher.")
    return folder


def _origin_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.source")


def _is_kept(path: Path, record: Sequence[object]) -> bool:
    try:
        return bool(read_sealed(_origin_of(path)) == {"origin": [*record, sha256_of(path)]})
    except (OSError, ValueError):  # absent, altered or of an older version
        return False
