"""From a folder of images to arrays: sound files only, of one size, all gray or all in colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pinoise.data.dataset import Samples
from pinoise.data.formats.raw import RawArrays, RawPart
from pinoise.data.images.cache import ImageCache
from pinoise.data.images.decoding import Look, describe
from pinoise.data.images.files import ImageFiles
from pinoise.data.images.folders import ImageFolder, Listing, list_images
from pinoise.data.images.looks import look_at
from pinoise.data.images.options import ImageOptions
from pinoise.data.wording import counted, listed
from pinoise.errors import UserError


@dataclass(frozen=True)
class FolderContent:
    """The images of a folder, with class names as labels, and what was done to them."""

    raw: RawArrays
    notes: tuple[str, ...]


def read_image_folder(
    folder: Path, options: ImageOptions, *, cache: Path | None = None, progress: bool = False
) -> FolderContent:
    """Look at every file of a folder, and return its images as arrays that decode when asked or that are mapped.

    Args:
        folder: see ``list_images``.
        options: size, colour, and what happens to corrupt files.
        cache: where decoded images are kept; None to decode them again whenever they are asked for.
        progress: whether bars are shown.
    """
    listing = list_images(folder)
    if cache is None:
        parts, files, told = _sound_files(listing, options, progress=progress)
        return FolderContent(_raw(parts, files), (*listing.notes, *told["notes"]))
    kept = ImageCache.of(listing, options, cache=cache.expanduser())
    if (content := _read_kept(kept, listing)) is not None:
        return content
    with kept.alone(progress=progress):
        if (content := _read_kept(kept, listing)) is not None:  # another process has decoded them meanwhile
            return content
        parts, files, told = _sound_files(listing, options, progress=progress)
        with tqdm(total=sum(map(len, files)), desc="decoding", unit="image", disable=not progress) as bar:
            arrays = kept.write(files, told, bar=bar.update)
    return FolderContent(_raw(parts, arrays), (*listing.notes, *told["notes"]))


def _read_kept(kept: ImageCache, listing: ImageFolder) -> FolderContent | None:
    found = kept.read()
    if found is None:
        return None
    arrays, told = found
    parts = [_without(part, set(told["skipped"])) for part in listing.parts]
    notes = (*listing.notes, *told["notes"], f"read from the decoded images kept in {kept.place.parent}")
    return FolderContent(_raw(parts, arrays), notes)


def _sound_files(
    listing: ImageFolder, options: ImageOptions, *, progress: bool
) -> tuple[list[Listing], list[ImageFiles], dict[str, Any]]:
    """Look at every file; return those that can be decoded, also as arrays, and what was skipped with a note on it."""
    looks = look_at(listing, told="checking" if progress else None)
    skipped, notes = _corrupt(listing, looks, options)
    parts = [_without(part, skipped) for part in listing.parts]
    shape = _shape(listing.root, {name: looks[name] for part in parts for name in part.names}, options)
    resize = options.size is not None
    files = [ImageFiles(listing.root, part.names, shape=shape, resize=resize) for part in parts]
    return parts, files, {"skipped": sorted(skipped), "notes": notes}


def _corrupt(listing: ImageFolder, looks: dict[str, Look], options: ImageOptions) -> tuple[set[str], tuple[str, ...]]:
    """Return the files to leave out and a note on them, or refuse them."""
    bad = [(name, found.problem) for name, found in looks.items() if found.problem is not None]
    if not bad:
        return set(), ()
    name, problem = bad[0]
    if options.corrupt == "refuse":
        more = f", and neither can {len(bad) - 1} more" if len(bad) > 1 else ""
        raise UserError(
            f"{listing.root / name} cannot be decoded ({problem}){more}: repair or remove such files, or have them "
            "left out with corrupt='skip' (--set data.corrupt=skip)."
        )
    skipped = {name for name, _ in bad}
    for part in listing.parts:
        classes = part.labels or ("",) * len(part.names)
        left = {label for name, label in zip(part.names, classes, strict=True) if name not in skipped}
        empty = sorted(set(classes) - left)
        if empty:
            what = f"of the class {empty[0]!r} " if part.labels else ""
            raise UserError(f"{listing.root}: every image {what}is corrupt, {name} for one ({problem}).")
    more = f", then {listed([name for name, _ in bad[1:]], most=3)}" if len(bad) > 1 else ""
    return skipped, (f"left out {counted(len(bad), 'corrupt image')}, first {name} ({problem}){more}",)


def _shape(folder: Path, sound: dict[str, Look], options: ImageOptions) -> tuple[int, ...]:
    first, size = next((name, found.size) for name, found in sound.items())
    if options.size is not None:
        size = options.size
    else:
        other = next((name for name, found in sound.items() if found.size != size), None)
        if other is not None:
            raise UserError(
                f"{folder} holds images of different sizes: {first} is {describe(size)} and {other} is "
                f"{describe(sound[other].size)} (height × width); give size to bring all to one (--set data.size=64)."
            )
    colour = options.color == "rgb" or (options.color == "auto" and any(found.colour for found in sound.values()))
    return (*size, 3) if colour else size


def _without(part: Listing, skipped: set[str]) -> Listing:
    if not skipped:
        return part
    rows = [row for row, name in enumerate(part.names) if name not in skipped]
    labels = None if part.labels is None else tuple(part.labels[row] for row in rows)
    return Listing(tuple(part.names[row] for row in rows), labels)


def _raw(parts: Sequence[Listing], arrays: Sequence[Samples]) -> RawArrays:
    raws = [
        RawPart(x, None if part.labels is None else np.array(part.labels), names=part.names)
        for part, x in zip(parts, arrays, strict=True)
    ]
    return RawArrays(raws[0], raws[1] if len(raws) > 1 else None)
