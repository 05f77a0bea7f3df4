"""What is known about every data set of the catalogue before its data is read; the facts are in ``sets.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pinoise.data.catalogue.fetch import DataFile, find
from pinoise.errors import unknown_choice


@dataclass(frozen=True)
class Entry:
    """A named data set: what it is, who publishes it, and how its files are read."""

    name: str
    title: str
    shape: tuple[int, ...]  # of one sample
    classes: int  # 0 without labels
    rows: tuple[int, int]  # train, test; 0 where there is no test part
    split: str
    licence: str
    source: str
    reader: str  # see ``pinoise.data.catalogue.loading.READERS``
    files: tuple[DataFile, ...] = ()
    combined: DataFile | None = None  # has the content of all files, and comes before them where it is found
    convert: bool = False  # reading takes long, so the result is kept in the cache
    unpack: tuple[str, ...] = ()  # files of an archive to unpack into the cache, because rows are read from them
    class_names: tuple[str, ...] | None = None  # where the files do not have them
    gray: bool = False  # whether samples of two axes are gray images

    @property
    def has_images(self) -> bool:
        """Whether samples are images."""
        return len(self.shape) == 3 or self.gray

    def __post_init__(self) -> None:
        texts = (self.name, self.title, self.split, self.licence, self.source, self.reader)
        if not all(isinstance(text, str) and text for text in texts):
            raise ValueError(f"sets.toml, {self.name!r}: name, title, split, licence, source and reader are texts")
        if not self.shape or min(self.shape) < 1 or len(self.rows) != 2 or self.rows[0] < 1 or min(self.rows) < 0:
            raise ValueError(f"sets.toml, {self.name!r}: shape {self.shape} or rows {self.rows} is wrong")
        if self.class_names is not None and len(self.class_names) != self.classes:
            raise ValueError(f"sets.toml, {self.name!r}: {len(self.class_names)} names for {self.classes} classes")

    def files_here(self, cache: Path | None) -> tuple[DataFile, ...]:
        """Return the files to read: the combined one where it is on this machine, else the publisher's."""
        combined = self.combined
        return self.files if combined is None or find(combined, cache=cache) is None else (combined,)


def entries() -> tuple[Entry, ...]:
    """Return every entry, those that need no file first.

    >>> [entry.name for entry in entries()][:4]
    ['digits', 'wine', 'breast_cancer', 'har']
    """
    return tuple(_entries().values())


def entry(name: str) -> Entry:
    """Return the entry of one data set.

    >>> entry("har").shape, entry("har").rows
    ((561,), (7352, 2947))
    """
    if name not in _entries():
        raise unknown_choice("data set", name, _entries())
    return _entries()[name]


def is_name(source: object) -> bool:
    """Whether this names a data set of the catalogue.

    >>> is_name("digits"), is_name("my.csv")
    (True, False)
    """
    return isinstance(source, str) and source in _entries()


def locate(name: str, *, cache: Path | None = None) -> dict[str, Path | None]:
    """Return where each file of a data set is on this machine, None for one that is not; nothing is read.

    A set that needs no file has an empty answer, so ``all(locate(name).values())`` says whether it can be loaded
    without a download.

    >>> locate("digits")
    {}
    """
    found = {file.name: find(file, cache=cache) for file in entry(name).files_here(cache)}
    return {file: None if at is None else at[1] for file, at in found.items()}


Availability = Literal["here", "download", "your files"]


def availability(name: str, *, cache: Path | None = None) -> Availability:
    """Return whether a set is on this machine, is downloaded when it is first used, or needs files of the user.

    >>> availability("digits")
    'here'
    """
    absent = [file for file in entry(name).files_here(cache) if find(file, cache=cache) is None]
    if not absent:
        return "here"
    return "download" if all(file.url is not None for file in absent) else "your files"


@cache
def _entries() -> dict[str, Entry]:
    text = files("pinoise.data.catalogue").joinpath("sets.toml").read_text(encoding="utf-8")
    found = [_entry(table) for table in tomllib.loads(text)["set"]]
    by_name = {each.name: each for each in found}
    if len(by_name) < len(found):
        raise ValueError("sets.toml has two sets of one name")
    return by_name


def _entry(table: dict[str, Any]) -> Entry:
    values = {key: _plain(value) for key, value in table.items()}
    values["files"] = tuple(map(_data_file, table.get("files", ())))
    if "combined" in table:
        values["combined"] = _data_file(table["combined"])
    return Entry(**values)


def _data_file(table: dict[str, Any]) -> DataFile:
    instead = tuple(map(_data_file, table.get("instead", ())))
    return DataFile(**{key: _plain(value) for key, value in table.items()} | {"instead": instead})


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
