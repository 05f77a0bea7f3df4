"""From a folder of images to arrays: sound files only, of one size, all gray or all in colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from pinoise.data.dataset import Samples
from pinoise.data.formats.raw import RawArrays, RawPart
from pinoise.data.images.cache import ImageCache
from pinoise.data.images.decoding import ImageFiles, Inspection, describe
from pinoise.data.images.folders import ImageFolder, Listing, list_images
from pinoise.data.images.inspection import inspect_folder
from pinoise.data.messages import counted, listed
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError


def read_image_folder(folder: Path, options: ReadOptions, *, progress: bool = False) -> RawArrays:
    """Inspect every file of a folder, and return its images as arrays that decode when indexed, or are kept decoded.

    Args:
        folder: see ``list_images``.
        options: size, colour, what happens to corrupt files, and where decoded images are kept.
        progress: whether bars are shown.
    """
    listing = list_images(folder)
    if options.cache is None:
        return _raw(listing, *_sound_files(listing, options, progress=progress))
    cache = ImageCache.of(listing, options, cache=options.cache)
    decoded = cache.read()
    if decoded is None:
        with cache.locked(progress=progress):
            decoded = cache.read()  # another process may have decoded them meanwhile
            if decoded is None:
                files, skipped, notes = _sound_files(listing, options, progress=progress)
                with tqdm(total=sum(map(len, files)), desc="decoding", unit="image", disable=not progress) as bar:
                    arrays = cache.write(files, skipped, notes, done=bar.update)
                return _raw(listing, arrays, skipped, notes)
    kept = f"read from the decoded images kept in {cache.place.parent}"
    return _raw(listing, decoded.arrays, decoded.skipped, (*decoded.notes, kept))


def _sound_files(
    listing: ImageFolder, options: ReadOptions, *, progress: bool
) -> tuple[list[ImageFiles], list[str], tuple[str, ...]]:
    """Return the files of every part that can be decoded, as arrays; the names of the others, and notes on them."""
    inspections = inspect_folder(listing, progress=progress)
    skipped, notes = _corrupt(listing, inspections, options)
    parts = [_without(part, skipped) for part in listing.parts]
    shape = _shape(listing.root, {name: inspections[name] for part in parts for name in part.names}, options)
    resize = options.size is not None
    files = [ImageFiles(listing.root, part.names, shape=shape, resize=resize) for part in parts]
    return files, sorted(skipped), notes


def _corrupt(
    listing: ImageFolder, found: dict[str, Inspection], options: ReadOptions
) -> tuple[set[str], tuple[str, ...]]:
    """Return the files to leave out and a note on them, or refuse them."""
    bad = [(name, each) for name, each in found.items() if each.problem is not None]
    if not bad:
        return set(), ()
    name, first = bad[0]
    if options.corrupt == "refuse":
        more = f", and neither can {len(bad) - 1} more" if len(bad) > 1 else ""
        raise UserError(
            f"{listing.root / name} {first.verdict}{more}: repair or remove such files, or have them "
            "left out with corrupt='skip' (--set data.corrupt=skip)."
        )
    skipped = {name for name, _ in bad}
    for part in listing.parts:
        classes = part.labels or ("",) * len(part.names)
        left = {label for name, label in zip(part.names, classes, strict=True) if name not in skipped}
        empty = sorted(set(classes) - left)
        if empty:
            what = f"of the class {empty[0]!r} " if part.labels else ""
            raise UserError(f"{listing.root}: every image {what}is corrupt, {name} for one ({first.problem}).")
    more = f", then {listed([name for name, _ in bad[1:]], most=3)}" if len(bad) > 1 else ""
    return skipped, (f"left out {counted(len(bad), 'corrupt image')}, first {name} ({first.problem}){more}",)


def _shape(folder: Path, sound: dict[str, Inspection], options: ReadOptions) -> tuple[int, ...]:
    first, size = next((name, found.size) for name, found in sound.items())
    if options.height_and_width is not None:
        size = options.height_and_width
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


def _raw(listing: ImageFolder, arrays: Sequence[Samples], skipped: Sequence[str], notes: tuple[str, ...]) -> RawArrays:
    """Return the arrays of all parts with their class names as labels."""
    parts = [
        RawPart(x, None if part.labels is None else np.array(part.labels), names=part.names)
        for part, x in zip((_without(part, set(skipped)) for part in listing.parts), arrays, strict=True)
    ]
    return RawArrays(parts[0], parts[1] if len(parts) > 1 else None, notes=(*listing.notes, *notes))
