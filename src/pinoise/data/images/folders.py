"""Which files of a folder are images, which class each has, and which are held out."""

from __future__ import annotations

import os
from collections.abc import Container
from itertools import chain, compress, filterfalse
from pathlib import Path
from typing import NamedTuple, NoReturn

from pinoise.data.images.decoding import IMAGE_EXTENSIONS
from pinoise.errors import UserError, counted, listed

_TRAINING = ("train", "training")
_HELD_OUT = ("test", "testing", "val", "valid", "validation")  # the first that fits


class Listing(NamedTuple):
    """Files by their path in the folder, with ``/``, in sorted order, and the class of each where there are classes."""

    names: tuple[str, ...]
    labels: tuple[str, ...] | None = None

    def without(self, skipped: Container[str]) -> Listing:
        """Return the files but for some.

        >>> Listing(("a", "b"), ("cat", "dog")).without(["a"])
        Listing(names=('b',), labels=('dog',))
        """
        sound = [name not in skipped for name in self.names]
        labels = None if self.labels is None else tuple(compress(self.labels, sound))
        return Listing(tuple(compress(self.names, sound)), labels)


class ImageFolder(NamedTuple):
    """The files of a folder, those to train on and those to test on where there are any, and what was left out."""

    parts: tuple[Listing, ...]
    notes: tuple[str, ...]


def list_images(root: Path) -> ImageFolder:
    """List a folder: files directly inside have no labels, subfolders are classes, ``train`` or ``training`` with one
    of ``test``, ``testing``, ``val``, ``valid`` and ``validation`` beside it, in any case, are the parts of a split."""
    others, notes = list[str](), list[str]()
    folders, direct = _subfolders(root), _images_in(root, root, others, deep=False)
    training, held_out = _named(_TRAINING, folders), _named(_HELD_OUT, folders)
    alike = [*training, *held_out]
    if len(training) == 1 and (len(folders) == 1 or held_out) and not direct:
        train = _list_part(root, root / training[0], others)
        tests = [name for name in held_out if bool(_subfolders(root / name)) == (train.labels is not None)][:1]
        parts = (train, *(_list_part(root, root / name, others) for name in tests))
        if strange := sorted(set(parts[-1].labels or ()) - set(train.labels or ())):
            raise UserError(f"{root}: the test part has the class folder {strange[0]!r}, which training does not have.")
        if rest := [folder for folder in folders if folder not in (*training, *tests)]:
            notes.append(f"left out {counted(len(rest), 'folder')} beside {training[0]}: {listed(rest)}")
    elif alike and not direct:
        how = "have 'train' with 'test' or 'val' beside it alone, rename what is a class, or give one part"
        raise UserError(f"{root} has {listed(alike)}, named like parts of a split and not forming one: {how}.")
    else:
        parts = (_list_part(root, root, others),)
    if others:
        shown = listed(sorted(set(others)), most=3)
        notes.append(f"left out {counted(len(set(others)), 'file')} without the extension of an image: {shown}")
    return ImageFolder(parts, tuple(notes))


def _named(names: tuple[str, ...], folders: list[str]) -> list[str]:
    """Return the folders of these names, whatever their case, in the order of the names."""
    return [folder for name in names for folder in folders if folder.casefold() == name]


def _list_part(root: Path, folder: Path, others: list[str]) -> Listing:
    classes, direct = _subfolders(folder), _images_in(root, folder, others, deep=False)
    if direct and classes:
        what = f"both images ({listed(direct, most=1)}) and folders ({listed(classes, most=3)})"
        raise UserError(f"{folder} holds {what}: put all images into folders of their classes, or none.")
    if not direct and not classes:
        raise UserError(f"{folder} holds no images: they are known by their extensions, {', '.join(IMAGE_EXTENSIONS)}.")
    if direct:
        return Listing(tuple(direct))
    files = {label: _images_in(root, folder / label, others, deep=True) for label in classes}
    for label, names in files.items():
        if not names:
            raise UserError(f"the class folder {folder / label} holds no image: put its images there, or remove it.")
    labels = tuple(label for label, names in files.items() for _ in names)
    return Listing(tuple(chain.from_iterable(files.values())), labels)


def _images_in(root: Path, folder: Path, others: list[str], *, deep: bool) -> list[str]:
    """Return the images of a folder, or of all folders in it too, by their paths in the root; note other files."""
    images: list[str] = []
    for at, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if deep and not _is_hidden(name)]
        for name in filterfalse(_is_hidden, files):
            path = (Path(at) / name).relative_to(root).as_posix()
            (images if path.lower().endswith(IMAGE_EXTENSIONS) else others).append(path)
    return sorted(images)


def _subfolders(folder: Path) -> list[str]:
    _, folders, _ = next(os.walk(folder, onerror=_refuse))
    return sorted(filterfalse(_is_hidden, folders))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _refuse(error: OSError) -> NoReturn:
    raise UserError(f"the folder {error.filename} cannot be read: {error.strerror}.") from error
