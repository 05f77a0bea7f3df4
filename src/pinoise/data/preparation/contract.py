"""The one contract for reading more data as the training data was read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pinoise.data.dataset import Dataset, Spans
from pinoise.data.encoding.arrays import ArrayEncoding
from pinoise.data.encoding.labels import LabelEncoding
from pinoise.data.encoding.tables import TableEncoding
from pinoise.data.images.resizing import holds_images, resized
from pinoise.data.options import ReadOptions
from pinoise.data.source import Source, find_source
from pinoise.errors import UserError


@dataclass(frozen=True)
class Wanted:
    """What a caller of ``Preparation.read`` wants of a source; the fields are its arguments."""

    label: str | int | None
    labelled: bool
    own_classes: bool
    cache: Path | None
    progress: bool


class Preparation(ABC):
    """How training data became samples and class numbers, so that later data becomes the same.

    >>> from pinoise.data import from_arrays
    >>> _, preparation = from_arrays([[1.0, 2.0], [3.0, 4.0]], ["no", "yes"])
    >>> preparation.read([[5.0, 6.0]]).train.x.tolist(), preparation.shape, preparation.labels.names
    ([[5.0, 6.0]], (2,), ('no', 'yes'))
    """

    encoding: TableEncoding | ArrayEncoding

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.encoding.shape

    @property
    def spans(self) -> Spans:
        """The features of every column of a table that became several."""
        return self.encoding.spans

    @property
    def labels(self) -> LabelEncoding | None:
        """The classes that later labels are numbered by; None where training had no labels or a catalogue's set."""
        return self.encoding.labels

    @property
    @abstractmethod
    def description(self) -> str:
        """What training had, for messages."""

    @classmethod
    @abstractmethod
    def learn(cls, source: Source, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
        """Read training data, and return it with what later data needs to be read the same way."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold and ``preparation_from_json`` turns back into the same preparation."""

    @classmethod
    @abstractmethod
    def from_json(cls, stored: dict[str, Any]) -> Preparation:
        """Return the preparation that ``to_json`` wrote."""

    def read(
        self,
        source: object,
        *,
        label: str | int | None = None,
        labelled: bool = True,
        own_classes: bool = False,
        cache: Path | None = None,
        progress: bool = False,
    ) -> Dataset:
        """Read later data exactly as the training data was read.

        Args:
            source: a name of the catalogue, a path, or samples in memory, alone or as ``InMemory`` with labels.
            label: the column of the labels where it is not the one that training had; its classes are its own.
            labelled: whether labels are read; if so, they may still be absent.
            own_classes: whether arrays and folders may have classes that training did not have; otherwise, and in
                the label column of a table that training had, an unknown label is an error.
            cache: a folder that keeps decoded images.
            progress: whether downloads and the decoding of images show a bar.
        """
        found = find_source(source)
        if found.kind == "catalogue":
            return self._in_size(found.dataset(label=label, progress=progress))
        wanted = Wanted(label if labelled else None, labelled, own_classes, cache, progress)
        readers = {"table": self._read_table, "array": self._read_arrays, "images": self._read_images}
        return readers[found.kind](found, wanted)

    def _in_size(self, data: Dataset) -> Dataset:
        """Bring images of the catalogue to the size that training had, if they have as many channels."""
        alike = len(self.shape) == len(data.shape) and self.shape[2:] == data.shape[2:]
        return resized(data, self.shape[:2]) if alike and holds_images(data.train.x) else data  # type: ignore[arg-type]

    def _read_table(self, source: Source, wanted: Wanted) -> Dataset:
        self._refuse(source, "a table")

    def _read_arrays(self, source: Source, wanted: Wanted) -> Dataset:
        self._refuse(source, "an array")

    def _read_images(self, source: Source, wanted: Wanted) -> Dataset:
        self._refuse(source, "a folder of images")

    def _refuse(self, source: Source, what: str) -> NoReturn:
        raise UserError(f"{source.where} is {what}, but training had {self.description}: give data of that kind.")
