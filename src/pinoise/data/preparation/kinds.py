"""The kinds of training data, and what each must remember."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import scipy.sparse as sp

from pinoise.data.dataset import Dataset
from pinoise.data.encoding.arrays import ArrayEncoding, learn_arrays
from pinoise.data.encoding.learning import learn_table
from pinoise.data.encoding.stored import restored
from pinoise.data.encoding.tables import TableEncoding, WithoutColumns
from pinoise.data.formats.raw import RawArrays
from pinoise.data.options import Color, Corrupt, ReadOptions
from pinoise.data.preparation.contract import Preparation, Wanted, check_regression
from pinoise.data.source import Source, SourceKind, find_source
from pinoise.data.streaming.rule import check_streamable, streams
from pinoise.data.streaming.tables import learn_streamed_table, read_streamed_table
from pinoise.errors import UserError


@dataclass(frozen=True)
class TablePreparation(Preparation):
    """Training had a table: columns, categories, fill values and labels are remembered."""

    encoding: TableEncoding

    @property
    def description(self) -> str:
        """What training had, for messages."""
        return f"a table with the columns {', '.join(column.name for column in self.encoding.columns[:8])}"

    @classmethod
    def learn(cls, source: Source, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
        """Read a training table."""
        streamed = streams(source, options.stream)
        options.refuse_image_options(source.where, but="cache" if streamed else None)
        if streamed:
            data, encoding = learn_streamed_table(source, options)
            return data, cls(encoding)
        raw = source.table(text=(*options.categorical, *options.text))
        encoding, notes = learn_table(raw, options, where=source.where)
        return encoding.apply(raw, name=source.name, where=source.where, learned=notes), cls(encoding)

    def _read_table(self, source: Source, wanted: Wanted) -> Dataset:
        if streams(source, wanted.later.stream):
            return read_streamed_table(source, self.encoding, wanted.later, labelled=wanted.labelled)
        raw = WithoutColumns(source.table(text=self.encoding.text_columns), wanted.later.drop, where=source.where)
        encoding, later = self.encoding, wanted.later
        if later.label is not None:
            encoding = encoding.with_label(raw, later.label, regression=later.regression, where=source.where)
        return encoding.apply(raw, name=source.name, where=source.where, labelled=wanted.labelled)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding's fields beside the kind."""
        return {"kind": "table", **asdict(self.encoding)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> TablePreparation:
        """Return the preparation that ``to_json`` wrote."""
        return cls(restored(TableEncoding, stored))


@dataclass(frozen=True)
class ArrayPreparation(Preparation):
    """Training had arrays: shape and labels are remembered. Where samples are images, a folder of images fits too."""

    encoding: ArrayEncoding
    corrupt: Corrupt = ReadOptions.corrupt

    @property
    def description(self) -> str:
        """What training had, for messages."""
        return f"an array of samples of shape {self.shape}"

    @classmethod
    def learn(cls, source: Source, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
        """Read training arrays."""
        options.refuse_image_options(source.where)
        options.refuse_table_options(source.where)
        data, encoding = learn_arrays(
            source.arrays(), name=source.name, where=source.where, label=options.label, regression=options.regression
        )
        return data, cls(encoding)

    def _read_arrays(self, source: Source, wanted: Wanted) -> Dataset:
        raw = source.arrays(n_features=self.shape[0], first_index=self.encoding.first_index)
        encoding, later = self.encoding, wanted.later
        if later.label is not None:
            encoding = encoding.with_label(raw, later.label, regression=later.regression, where=source.where)
        return _applied(encoding, raw, source, wanted)

    def _read_images(self, source: Source, wanted: Wanted) -> Dataset:
        if len(self.shape) < 2 or self.shape[2:] not in ((), (3,)):
            self._refuse(source, "a folder of images")
        height, width, *channels = self.shape
        color: Color = "rgb" if channels else "gray"
        later = wanted.later
        options = ReadOptions(
            label=later.label,
            size=(height, width),
            color=color,
            corrupt=later.corrupt or self.corrupt,
            cache=later.cache,
        )
        return _applied(self.encoding, source.images(options, progress=wanted.progress), source, wanted)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding's fields beside the kind."""
        return {"kind": "array", **asdict(self.encoding)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ArrayPreparation:
        """Return the preparation that ``to_json`` wrote."""
        return cls(restored(ArrayEncoding, stored))


class ImagePreparation(ArrayPreparation):
    """Training had a folder of images: their shape and classes are remembered; arrays of such images fit too."""

    @property
    def description(self) -> str:
        """What training had, for messages."""
        return f"images of shape {self.shape}"

    @classmethod
    def learn(cls, source: Source, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
        """Read a folder of training images."""
        options.refuse_table_options(source.where)
        raw = source.images(options, progress=progress)
        _check_class_folders(raw, source.where)
        data, encoding = learn_arrays(raw, name=source.name, where=source.where)
        return data, cls(encoding, options.corrupt)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding, and what happens to corrupt files."""
        return {"kind": "images", "arrays": asdict(self.encoding), "corrupt": self.corrupt}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ImagePreparation:
        """Return the preparation that ``to_json`` wrote."""
        corrupt = ReadOptions(corrupt=stored["corrupt"]).corrupt
        return cls(restored(ArrayEncoding, stored["arrays"]), corrupt)


class CataloguePreparation(ArrayPreparation):
    """Training had a data set of the catalogue: later arrays and images must have its shape, with classes of their own.

    A table is encoded by what it holds itself, because the set has no columns to compare with.
    """

    @classmethod
    def learn(cls, source: Source, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
        """Load a data set of the catalogue."""
        options.refuse_image_options(source.where, but="size")
        options.refuse_table_options(source.where)
        data = source.dataset(label=options.label, size=options.height_and_width, progress=progress)
        return data, cls(ArrayEncoding(shape=data.shape, sparse=bool(sp.issparse(data.train.x))))

    def _read_table(self, source: Source, wanted: Wanted) -> Dataset:
        later = wanted.later
        cache = later.cache if streams(source, later.stream) else None
        options = ReadOptions(
            label=later.label, regression=later.regression, drop=later.drop, stream=later.stream, cache=cache
        )
        return TablePreparation.learn(source, options)[0]

    def to_json(self) -> dict[str, Any]:
        """Return shape and layout of the samples."""
        return {"kind": "catalogue", "shape": self.shape, "sparse": self.encoding.sparse}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> CataloguePreparation:
        """Return the preparation that ``to_json`` wrote."""
        return cls(restored(ArrayEncoding, stored))


def _applied(encoding: ArrayEncoding, raw: RawArrays, source: Source, wanted: Wanted) -> Dataset:
    return encoding.apply(
        raw, name=source.name, where=source.where, labelled=wanted.labelled, own_classes=wanted.own_classes
    )


def _check_class_folders(raw: RawArrays, where: str) -> None:
    """Refuse training images of a single class, and test images of a class that training does not have."""
    if raw.train.y is None:
        return
    classes = set(raw.train.y.tolist())
    if len(classes) == 1:
        raise UserError(
            f"{where} has a single class folder, {str(raw.train.y[0])!r}, but classes need two or more: give that "
            "folder itself to learn without labels."
        )
    held_out = set() if raw.test is None or raw.test.y is None else set(raw.test.y.tolist())
    for strange in sorted(held_out - classes):
        raise UserError(f"{where}: the test part has the class folder {strange!r}, which training does not have.")


KINDS: dict[SourceKind, type[Preparation]] = {
    "table": TablePreparation,
    "array": ArrayPreparation,
    "images": ImagePreparation,
    "catalogue": CataloguePreparation,
}


def prepare(given: object, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
    """Read training data from any source, and return it with the preparation that reads later data the same way."""
    source = find_source(given)
    check_streamable(source, options.stream)
    data, preparation = KINDS[source.kind].learn(source, options, progress=progress)
    check_regression(options.regression, data, where=source.where)
    return data, preparation


def preparation_from_json(stored: dict[str, Any]) -> Preparation:
    """Return the preparation whose ``to_json`` is given.

    >>> preparation_from_json({"kind": "picture"})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: the stored preparation is of kind 'picture': it must be table, array, images or catalogue.
    """
    kind = stored.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        *others, last = KINDS
        raise UserError(f"the stored preparation is of kind {kind!r}: it must be {', '.join(others)} or {last}.")
    try:
        preparation = KINDS[kind].from_json(stored)
    except KeyError as error:
        raise UserError(f"the stored preparation of kind {kind!r} is damaged: it has no entry {error}.") from None
    if json.loads(json.dumps(preparation.to_json())) != json.loads(json.dumps(stored)):
        raise UserError(f"the stored preparation of kind {kind!r} is damaged: it has entries of another kind.")
    return preparation
