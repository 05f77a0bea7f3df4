"""What the catalogue knows about a data set before any of its data is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.dataset import Dataset

Reader = Callable[[Sequence[Path]], Dataset]
"""From the paths of an entry's files, in its order, to the data."""


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
    reader: Reader = field(repr=False, compare=False)
    files: tuple[DataFile, ...] = ()
    parsed: bool = True  # reading takes long enough that the result is kept in the cache
    prepared: DataFile | None = None  # has the content of all files, and comes before them where it is found
    unpacked: tuple[str, ...] = ()  # files of an archive that are mapped, and therefore unpacked into the cache
