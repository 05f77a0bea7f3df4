"""What the cache keeps of data sets beside the downloads: sets that take long to parse, and unpacked files."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Part
from pinoise.data.disk import kept, place_of, state_of
from pinoise.data.formats.archives import GIB, members
from pinoise.errors import UserError
from pinoise.files import WriteError

logger = logging.getLogger(__name__)

VERSION = 3  # to be raised whenever a reader gives other values for the same files, or other files are written here

Sources = Iterable[tuple[Path, str | None]]
"""Files with their SHA-256, where it is known."""


def converted(name: str, sources: Sources, convert: Callable[[], Dataset], *, cache: Path) -> Dataset:
    """Return a set as it was kept when the same files were parsed before; else parse them and keep it."""
    parsed: list[Dataset] = []

    def make(folder: Path) -> dict[str, Any]:
        parsed.append(convert())
        return _write(folder, parsed[0])

    try:
        folder, texts = kept(cache / "converted" / name, _key(sources), make)
    except WriteError as error:  # a cache is a convenience
        logger.warning("the conversion of %s is not kept: %s", name, error)
        return parsed[0] if parsed else convert()
    return parsed[0] if parsed else _read(name, folder, texts)


def _key(sources: Sources) -> list[Any]:
    return [VERSION, [[path.name, sha256 or state_of(path)] for path, sha256 in sources]]


def _write(folder: Path, data: Dataset) -> dict[str, Any]:
    for side, part in (("train", data.train), ("test", data.test)):
        for name in ("x", "y", "groups"):
            values = getattr(part, name, None)
            if isinstance(values, sp.csr_array):
                sp.save_npz(folder / f"{side}_{name}.npz", values, compressed=False)
            elif values is not None:
                np.save(folder / f"{side}_{name}.npy", np.asarray(values))
    return {"features": data.feature_names, "classes": data.class_names, "notes": data.notes}


def _read(name: str, folder: Path, texts: dict[str, Any]) -> Dataset:
    arrays: dict[str, Any] = {file.stem: sp.load_npz(file) for file in folder.glob("*.npz")}
    arrays |= {file.stem: np.load(file) for file in folder.glob("*.npy")}
    features, classes = (None if names is None else tuple(names) for names in (texts["features"], texts["classes"]))
    notes = (*texts["notes"], f"read from the conversion kept in {folder}")
    test = _part(arrays, "test") if "test_x" in arrays else None
    return Dataset(name, _part(arrays, "train"), test, feature_names=features, class_names=classes, notes=notes)


def _part(arrays: Mapping[str, Any], side: str) -> Part:
    return Part(arrays[f"{side}_x"], arrays.get(f"{side}_y"), arrays.get(f"{side}_groups"))


def unpacked(archive: Path, names: Sequence[str], *, cache: Path) -> Path:
    """Return the folder in the cache that holds these files of an archive; they are unpacked once."""

    def make(folder: Path) -> dict[str, Any]:
        missing = set(names)
        for member, stream in members(archive, "*", limit=8 * GIB):
            name = Path(member).name
            if name in missing:
                missing.discard(name)
                with (folder / name).open("xb") as target:
                    shutil.copyfileobj(stream, target, 1 << 20)
        if missing:
            raise UserError(f"{archive} holds no file {min(missing)!r}: get the archive again from its publisher.")
        return {}

    place = place_of("unpacked", archive.name.split(".")[0], list(names), folder=cache / "unpacked")
    return kept(place, _key([(archive, None)]), make).folder
