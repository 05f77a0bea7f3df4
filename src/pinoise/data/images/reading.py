"""From a folder of images to arrays: sound files only, of one size, all gray or all in colour.

Where the user names a folder for them, images are decoded once, and kept by ``pinoise.data.disk``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pinoise.data.dataset import Dataset, Part, RawArrays, RawPart, Samples, row_slices
from pinoise.data.disk import check_room, in_threads, kept, peek, place_of, write_rows
from pinoise.data.formats.arrays import read_npy
from pinoise.data.images.decoding import ImageFiles, Inspection, describe, inspect_image, resized_images
from pinoise.data.images.folders import ImageFolder, list_images
from pinoise.data.lazy import LazyArray
from pinoise.data.messages import counted, listed
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError

VERSION = 5  # to be raised whenever images are decoded to other pixels


def read_image_folder(folder: Path, options: ReadOptions, *, progress: bool = False) -> RawArrays:
    """Inspect every file of a folder, and return its images as arrays that decode when indexed, or are kept decoded.

    Args:
        folder: see ``list_images``.
        options: size, colour, what happens to corrupt files, and where decoded images are kept.
        progress: whether bars are shown.
    """
    listing, arrays = (_sound_files if options.cache is None else _decoded)(list_images(folder), options, progress)
    parts = [
        RawPart(x, None if part.labels is None else np.array(part.labels), names=part.names)
        for part, x in zip(listing.parts, arrays, strict=True)
    ]
    return RawArrays(parts[0], parts[1] if len(parts) > 1 else None, notes=listing.notes)


def _sound_files(listing: ImageFolder, options: ReadOptions, progress: bool) -> tuple[ImageFolder, list[ImageFiles]]:
    """Return the files that can be decoded, and those of every part as an array."""
    found = inspect_folder(listing, progress=progress)
    sound = _without_corrupt(listing, {name: each for name, each in found.items() if each.problem is not None}, options)
    shape, resize = _shape(sound.root, {name: found[name] for name in sound.names}, options), options.size is not None
    return sound, [ImageFiles(sound.root, part.names, shape=shape, resize=resize) for part in sound.parts]


def _decoded(listing: ImageFolder, options: ReadOptions, progress: bool) -> tuple[ImageFolder, list[LazyArray]]:
    """Return the files that could be decoded, and the images of every part, which are kept in a folder."""
    assert options.cache is not None
    root = listing.root.resolve()
    chosen = (options.height_and_width, options.color, options.corrupt)
    place, key = place_of("images", root.name, str(root), chosen, folder=options.cache), _key(listing)

    def make(folder: Path) -> dict[str, Any]:
        sound, files = _sound_files(listing, options, progress)
        check_room(place, sum(prod(images.shape) for images in files), what="decoded images")
        for number, images in enumerate(files):
            checksums = np.frombuffer(b"".join(images.file_checksums()), np.uint8)
            np.save(folder / f"{number}.sha256.npy", checksums.reshape(-1, 32))
            chunks = tqdm(list(row_slices(images)), desc="decoding", unit="chunk", disable=not progress)
            decoded = (images[rows] for rows in chunks)
            write_rows(folder / f"{number}.npy", decoded, shape=images.shape[1:], dtype=np.uint8)
        skipped = sorted(set(listing.names) - set(sound.names))
        return {"skipped": skipped, "notes": sound.notes[len(listing.notes) :]}

    before = peek(place, key)
    waiting = f"waiting for another process, which decodes the images of {root}" if progress else None
    folder, about = before or kept(place, key, make, waiting=waiting)
    sound = listing.without(set(about["skipped"])).noting(*about["notes"])
    arrays = []
    for number in range(len(sound.parts)):
        pixels: Any = read_npy(folder / f"{number}.npy").train.x
        pixels.checksums = np.load(folder / f"{number}.sha256.npy")
        arrays.append(pixels)
    if before is not None:
        sound = sound.noting(f"read from the decoded images kept in {options.cache}")
    return sound, arrays


def _key(listing: ImageFolder) -> list[Any]:
    """Return what changes with any of the files."""

    def state(path: Path) -> list[int]:
        try:
            found = path.stat()
        except OSError:  # the inspection says why
            return []
        # The second time is the system's own, which no program sets back.
        return [found.st_size, found.st_mtime_ns, found.st_ctime_ns]

    states = list(in_threads(state, [listing.root / name for name in listing.names]))
    return [VERSION, hashlib.sha256(json.dumps([listing.names, states]).encode()).hexdigest()]


def inspect_folder(listing: ImageFolder, *, progress: bool = False) -> dict[str, Inspection]:
    """Return what was found in every file, by name; ``progress`` shows a bar."""
    paths, bar = [listing.root / name for name in listing.names], "checking" if progress else None
    return dict(zip(listing.names, in_threads(inspect_image, paths, bar=bar), strict=True))


def _without_corrupt(listing: ImageFolder, bad: dict[str, Inspection], options: ReadOptions) -> ImageFolder:
    """Leave out files with a problem, and say so in a note, or refuse them."""
    if not bad:
        return listing
    (name, first), *others = bad.items()
    if options.corrupt == "refuse":
        more = f", and neither can {len(others)} more" if others else ""
        raise UserError(
            f"{listing.root / name} cannot be decoded ({first.problem}){more}: repair or remove such files, "
            "or have them left out with corrupt='skip' (--set data.corrupt=skip)."
        )
    sound = listing.without(bad)
    for part, left in zip(listing.parts, sound.parts, strict=True):
        empty = sorted(set(part.labels or ()) - set(left.labels or ()))
        if empty or not left.names:
            what = f"of the class {empty[0]!r} " if empty else ""
            raise UserError(f"{listing.root}: every image {what}is corrupt, {name} for one ({first.problem}).")
    more = f", then {listed([name for name, _ in others], most=3)}" if others else ""
    return sound.noting(f"left out {counted(len(bad), 'corrupt image')}, first {name} ({first.problem}){more}")


def _shape(folder: Path, sound: dict[str, Inspection], options: ReadOptions) -> tuple[int, ...]:
    """Return the shape that all images have or are brought to."""
    first, size = next((name, found.size) for name, found in sound.items())
    other = next((name for name, found in sound.items() if found.size != size), None)
    if options.height_and_width is not None:
        size = options.height_and_width
    elif other is not None:
        raise UserError(
            f"{folder} holds images of different sizes: {first} is {describe(size)} and {other} is "
            f"{describe(sound[other].size)} (height × width); give size to bring all to one (--set data.size=64)."
        )
    colour = options.color == "rgb" or (options.color == "auto" and any(found.colour for found in sound.values()))
    return (*size, 3) if colour else size


def holds_images(x: Samples) -> bool:
    """Whether samples are bytes of gray or colour images.

    >>> holds_images(np.zeros((2, 8, 8), dtype=np.uint8)), holds_images(np.zeros((2, 128, 6)))
    (True, False)
    """
    return x.dtype == np.uint8 and tuple(x.shape[3:]) in ((), (1,), (3,)) and x.ndim in (3, 4)


def resized(data: Dataset, size: tuple[int, int]) -> Dataset:
    """Return a set of images in another size: scaled until the shorter side fits, and cropped about the centre.

    >>> data = Dataset("toy", train=Part(np.zeros((2, 8, 8), dtype=np.uint8)))
    >>> small = resized(data, (4, 4))
    >>> small.shape, small.notes
    ((4, 4), ('images were brought from 8 × 8 to 4 × 4 pixels',))
    """
    if not holds_images(data.train.x):
        raise UserError(
            f"{data.name} has samples of shape {data.shape}, which are no images, so size cannot apply: leave it out."
        )
    height, width = data.shape[:2]
    if (height, width) == size:
        return data

    def brought(part: Part) -> Part:
        images = resized_images(part.x, size)  # type: ignore[arg-type]  # no sparse matrix
        # What is in memory stays there, so that no image is resized twice.
        return replace(part, x=images[:] if type(part.x) is np.ndarray else images)

    note = f"images were brought from {describe((height, width))} to {describe(size)} pixels"
    test = None if data.test is None else brought(data.test)
    return replace(data, train=brought(data.train), test=test, notes=(*data.notes, note))
