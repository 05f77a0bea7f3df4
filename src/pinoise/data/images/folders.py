"""Which files of a folder are images, which class each has, and which are held out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from pinoise.data.images.decoding import IMAGE_EXTENSIONS
from pinoise.data.messages import counted, listed
from pinoise.errors import UserError

_TRAINING = ("train", "training")
_HELD_OUT = ("test", "testing", "val", "valid", "validation")  # the first that fits


@dataclass(frozen=True)
class Listing:
    """Files by their path in the folder, with ``/``, in sorted order, and the class of each where there are classes."""

    names: tuple[str, ...]
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ImageFolder:
    """The files of a folder."""

    root: Path
    train: Listing
    test: Listing | None = None
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Listing, ...]:
        """Training files, and test files where there are any."""
        return (self.train,) if self.test is None else (self.train, self.test)


def list_images(root: Path) -> ImageFolder:
    """List a folder: files directly inside have no labels, subfolders are classes, ``train`` or ``training`` with one
    of ``test``, ``testing``, ``val``, ``valid`` and ``validation`` beside it, in any case, are the parts of a split."""
    found = _Found(root)
    folders = _subfolders(root)
    direct = found.images_in(root, deep=False)
    training = _named(_TRAINING, folders)
    held_out = _named(_HELD_OUT, folders)
    is_split = len(training) == 1 and (len(folders) == 1 or bool(held_out))
    if is_split and not direct:
        return _list_split(root, training[0], held_out, folders, found)
    alike = [*training, *held_out]
    is_class = alike == ["train"] and not _is_labelled(root / "train")  # pictures of trains
    if alike and not direct and not is_class:
        raise UserError(
            f"{root} has the {'folder' if len(alike) == 1 else 'folders'} {listed(alike)}, named like the parts of a "
            "split and not forming one: have one folder 'train' with 'test' or 'val' beside it, rename what is a "
            "class, or give one part alone."
        )
    return ImageFolder(root, _list_part(root, found), notes=found.notes())


def _named(names: tuple[str, ...], folders: list[str]) -> list[str]:
    """Return the folders of these names, whatever their case, in the order of the names."""
    return [folder for name in names for folder in folders if folder.casefold() == name]


def _list_split(root: Path, training: str, held_out: list[str], folders: list[str], found: _Found) -> ImageFolder:
    train = _list_part(root / training, found)
    fitting = (name for name in held_out if _is_labelled(root / name) == (train.labels is not None))
    test = next(fitting, None)
    rest = [folder for folder in folders if folder not in (training, test)]
    if rest:
        found.remarks.append(f"left out {counted(len(rest), 'folder')} beside {training}: {listed(rest)}")
    return ImageFolder(root, train, None if test is None else _list_part(root / test, found), found.notes())


def _list_part(folder: Path, found: _Found) -> Listing:
    classes = _subfolders(folder)
    direct = found.images_in(folder, deep=False)
    if direct and classes:
        raise UserError(
            f"{folder} holds both images ({listed(direct, most=1)}) and folders ({listed(classes, most=3)}): "
            "put all images into folders of their classes, or none."
        )
    if not classes:
        if not direct:
            raise UserError(
                f"{folder} holds no images: they are known by their extensions, {', '.join(IMAGE_EXTENSIONS)}."
            )
        return Listing(tuple(direct))
    names: list[str] = []
    labels: list[str] = []
    for label in classes:
        files = found.images_in(folder / label, deep=True)
        if not files:
            raise UserError(f"the class folder {folder / label} holds no image: put its images there, or remove it.")
        names += files
        labels += [label] * len(files)
    return Listing(tuple(names), tuple(labels))


@dataclass
class _Found:
    """What was found on the way and belongs in notes."""

    root: Path
    others: list[str] = field(default_factory=list)  # files that are not images
    remarks: list[str] = field(default_factory=list)

    def images_in(self, folder: Path, *, deep: bool) -> list[str]:
        """Return the images of a folder, or of all folders in it too, by their paths in the root."""
        images: list[str] = []
        for at, folders, files in os.walk(folder, onerror=_raise):
            folders[:] = [name for name in folders if deep and not _is_hidden(name)]
            for name in files:
                if _is_hidden(name):
                    continue
                path = (Path(at) / name).relative_to(self.root).as_posix()
                (images if path.lower().endswith(IMAGE_EXTENSIONS) else self.others).append(path)
        return sorted(images)

    def notes(self) -> tuple[str, ...]:
        """Return the notes."""
        others = sorted(set(self.others))
        if not others:
            return tuple(self.remarks)
        left = f"left out {counted(len(others), 'file')} without the extension of an image: {listed(others, most=3)}"
        return (*self.remarks, left)


def _subfolders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not _is_hidden(entry.name))
    except OSError as error:
        raise _unreadable(error) from error


def _is_labelled(folder: Path) -> bool:
    return bool(_subfolders(folder))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _unreadable(error: OSError) -> UserError:
    return UserError(f"the folder {error.filename} cannot be read: {error.strerror}.")


def _raise(error: OSError) -> NoReturn:
    raise _unreadable(error) from error
