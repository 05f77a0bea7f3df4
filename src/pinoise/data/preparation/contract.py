"""The one contract for reading more data as the training data was read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pinoise.data.dataset import Dataset, Spans
from pinoise.data.encoding.arrays import ArrayEncoding
from pinoise.data.encoding.labels import LabelEncoding
from pinoise.data.encoding.tables import TableEncoding
from pinoise.data.images.reading import holds_images, resized
from pinoise.data.options import AS_TRAINED, LaterOptions, ReadOptions
from pinoise.data.source import Source, find_source
from pinoise.errors import UserError


@dataclass(frozen=True)
class Wanted:
    """What a caller of ``Preparation.read`` wants of a source; the fields are its arguments."""

    later: LaterOptions
    labelled: bool
    own_classes: bool
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
        later: LaterOptions = AS_TRAINED,
        *,
        labelled: bool = True,
        own_classes: bool = False,
        progress: bool = False,
    ) -> Dataset:
        """Read later data as the training data was read.

        Args:
            source: a name of the catalogue, a path, or samples in memory, alone or as ``InMemory`` with labels.
            later: what differs from training.
            labelled: whether labels are read; if so, they may still be absent.
            own_classes: whether arrays and folders may have classes that training did not have; otherwise, and in
                the label column of a table that training had, an unknown label is an error.
            progress: whether downloads and the decoding of images show a bar.
        """
        found = find_source(source)
        later = later if labelled else replace(later, label=None, regression=None)
        if found.kind != "table":
            ReadOptions(drop=later.drop).refuse_table_options(found.where)
        if found.kind != "images" and later.corrupt is not None:
            ReadOptions(corrupt=later.corrupt).refuse_image_options(found.where)
        if found.kind == "catalogue":
            data = self._in_size(found.dataset(label=later.label, progress=progress))
        else:
            readers = {"table": self._read_table, "array": self._read_arrays, "images": self._read_images}
            data = readers[found.kind](found, Wanted(later, labelled, own_classes, progress))
        check_regression(later.regression, data, where=found.where)
        return data

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


def check_regression(regression: bool | None, data: Dataset, *, where: str) -> None:
    """Refuse labels that are not what a user says they are: a measurement, or classes; None says nothing."""
    if regression not in (None, data.measures) or (regression is not None and data.train.y is None):
        what = "classes" if regression else "a measurement"
        what = "no labels; name their column with --label" if data.train.y is None else f"{what} as labels"
        raise UserError(f"regression is {str(regression).lower()}, but {where} has {what}.")
