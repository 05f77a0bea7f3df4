"""From a folder of images to arrays: sound files only, of one size, all gray or all in colour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from pinoise.data.dataset import Dataset, Part, RawArrays, Samples, in_threads
from pinoise.data.images.decoding import ImageFiles, Inspection, describe, inspect_image, resized_images
from pinoise.data.images.folders import ImageFolder, list_images
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError, counted, listed


def read_image_folder(folder: Path, options: ReadOptions, *, progress: bool = False) -> RawArrays:
    """Inspect every file of a folder, and return its images as arrays that decode when indexed.

    Args:
        folder: see ``list_images``.
        options: size, colour, and what happens to corrupt files.
        progress: whether bars are shown.
    """
    listing = list_images(folder)
    names = [name for part in listing.parts for name in part.names]
    bar = "checking" if progress else None
    found = dict(zip(names, in_threads(inspect_image, [folder / name for name in names], bar=bar), strict=True))
    bad = {name: each for name, each in found.items() if each.problem is not None}
    sound = _without_corrupt(folder, listing, bad, options) if bad else listing
    shape = _shape(folder, {name: each for name, each in found.items() if name not in bad}, options)
    parts = list[Part]()
    for part in sound.parts:
        images = ImageFiles(folder, part.names, shape=shape, resize=options.size is not None)
        parts.append(Part(images, None if part.labels is None else np.array(part.labels), names=part.names))
    return RawArrays(parts[0], parts[1] if len(parts) > 1 else None, notes=sound.notes)


def _without_corrupt(
    folder: Path, listing: ImageFolder, bad: dict[str, Inspection], options: ReadOptions
) -> ImageFolder:
    """Leave out files with a problem, and say so in a note, or refuse them."""
    name, first = next(iter(bad.items()))
    if options.corrupt == "refuse":
        how = "repair or remove it, or leave such files out with corrupt='skip' (--set data.corrupt=skip)"
        raise UserError(f"{folder / name} cannot be decoded ({first.problem}): {how}.")
    sound = tuple(part.without(bad) for part in listing.parts)
    for part, left in zip(listing.parts, sound, strict=True):
        empty = sorted(set(part.labels or ()) - set(left.labels or ()))
        if empty or not left.names:
            what = f"of the class {empty[0]!r} " if empty else ""
            raise UserError(f"{folder}: every image {what}is corrupt, {name} for one ({first.problem}).")
    note = f"left out {counted(len(bad), 'corrupt image')} ({first.problem}): {listed(bad, most=4)}"
    return ImageFolder(sound, (*listing.notes, note))


def _shape(folder: Path, sound: dict[str, Inspection], options: ReadOptions) -> tuple[int, ...]:
    """Return the shape that all images have or are brought to."""
    first, size = next((name, found.size) for name, found in sound.items())
    other = next((name for name, found in sound.items() if found.size != size), None)
    if options.height_and_width is not None:
        size = options.height_and_width
    elif other is not None:
        sizes = f"{first} is {describe(size)} and {other} is {describe(sound[other].size)} (height × width)"
        raise UserError(f"{folder} holds images of different sizes: {sizes}; bring all to one with --set data.size=64.")
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
        what = f"has samples of shape {data.shape}, which are no images"
        raise UserError(f"{data.name} {what}, so size cannot apply: leave it out.")
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
