"""What is known about every data set of the catalogue before its data is read; the facts are in ``sets.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pinoise.errors import unknown_choice
from pinoise.paper.catalogue.fetch import DataFile, find


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
    reader: str  # in READERS or SET_READERS of ``pinoise.paper.catalogue.loading``
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

    def files_here(self, cache: Path | None) -> tuple[DataFile, ...]:
        """Return the files to read: the combined one where it is on this machine, else the publisher's."""
        combined = self.combined
        return self.files if combined is None or find(combined, cache=cache) is None else (combined,)

    @property
    def availability(self) -> str:
        """Whether the set is ``here``, needs a ``download`` when it is first used, or ``your files``."""
        absent = [file for file in self.files_here(None) if find(file) is None]
        needed = "download" if all(file.url for file in absent) else "your files"
        return needed if absent else "here"


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
    return {file.name: (find(file, cache=cache) or (file, None))[1] for file in entry(name).files_here(cache)}


@cache
def _entries() -> dict[str, Entry]:
    text = files("pinoise.paper.catalogue").joinpath("sets.toml").read_text(encoding="utf-8")
    return {table["name"]: _entry(table) for table in tomllib.loads(text)["set"]}


def _entry(table: dict[str, Any]) -> Entry:
    return Entry(**{key: _fact(value) for key, value in table.items()})


def _fact(value: Any) -> Any:
    """Return a value of the file of facts: its lists are tuples, and the tables in it are files."""
    if isinstance(value, dict):
        return DataFile(**{key: _fact(each) for key, each in value.items()})
    return tuple(map(_fact, value)) if isinstance(value, list) else value
