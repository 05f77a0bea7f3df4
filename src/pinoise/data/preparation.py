"""How training data was read, remembered so that later data is read the same way: one contract for every source."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pydantic import Field, TypeAdapter, ValidationError

from pinoise.data.arrays import ArrayEncoding, learn_arrays
from pinoise.data.dataset import Dataset
from pinoise.data.disk import kept, place_of, write_rows
from pinoise.data.formats.arrays import read_npy
from pinoise.data.formats.opened import states_of
from pinoise.data.images.reading import holds_images, read_image_folder, resized
from pinoise.data.options import AS_TRAINED, Corrupt, LaterOptions, ReadOptions, Stream
from pinoise.data.source import Source, find_source, load
from pinoise.data.table.batches import Table
from pinoise.data.table.encoding import TableEncoder, TableEncoding, learn_table
from pinoise.errors import UserError

STREAM_BYTES = 10**9
"""Numbers in double precision, or text, above which the rows of a table are kept on disk."""

_ASIDE = ("rows", "stream")  # options that decide nothing about a table's rows


class Preparation(ABC):
    """How training data became samples and class numbers, so that later data becomes the same.

    >>> from pinoise.data import from_arrays
    >>> _, preparation = from_arrays([[1.0, 2.0], [3.0, 4.0]], ["no", "yes"])
    >>> preparation.read([[5.0, 6.0]]).train.x.tolist(), preparation.shape, preparation.encoding.labels.names
    ([[5.0, 6.0]], (2,), ('no', 'yes'))
    """

    encoding: TableEncoding | ArrayEncoding

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.encoding.shape

    @property
    @abstractmethod
    def description(self) -> str:
        """What training had, for messages."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold and ``preparation_from_json`` turns back into the same preparation."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def read(
        self, source: object, later: LaterOptions = AS_TRAINED, *, labelled: bool = True, progress: bool = False
    ) -> Dataset:
        """Read later data as the training data was read.

        Args:
            source: a name of the catalogue, a path, or samples in memory, alone or as ``InMemory`` with labels.
            later: what differs from training.
            labelled: whether labels are read; if so, they may still be absent. Where training did not have them all,
                those of arrays and folders make classes of their own; in the label column of a table that training
                had, an unknown label is an error.
            progress: whether downloads and the decoding of images show a bar.
        """
        found = find_source(source)
        later = later if labelled else replace(later, label=None, regression=None)
        if found.kind != "table":
            later.as_read_options().refuse_table_options(found.where)
        if found.kind != "images":
            later.as_read_options().refuse_image_options(found.where)
        if found.kind == "catalogue":
            data = self._in_size(load(found.name, progress=progress))
        else:
            data = self._read(found, later, labelled, progress)
        check_regression(later.regression, data, where=found.where)
        return data

    def _in_size(self, data: Dataset) -> Dataset:
        """Bring images of the catalogue to the size that training had, if they have as many channels."""
        alike = len(self.shape) == len(data.shape) and self.shape[2:] == data.shape[2:]
        return resized(data, self.shape[:2]) if alike and holds_images(data.train.x) else data  # type: ignore[arg-type]

    @abstractmethod
    def _read(self, source: Source, later: LaterOptions, labelled: bool, progress: bool) -> Dataset:
        """Read data that is no set of the catalogue; the arguments are those of ``read``."""

    def _other_kind(self, source: Source) -> UserError:
        what = {"table": "a table", "array": "an array", "images": "a folder of images"}[source.kind]
        return UserError(f"{source.where} is {what}, but training had {self.description}: give data of that kind.")


@dataclass(frozen=True)
class TablePreparation(Preparation):
    """Training had a table: columns, categories, fill values and labels are remembered."""

    encoding: TableEncoding
    kind: Literal["table"] = "table"

    @property
    def description(self) -> str:
        """What training had, for messages."""
        return f"a table with the columns {', '.join(column.name for column in self.encoding.columns[:8])}"

    @classmethod
    def learn(cls, source: Source, options: ReadOptions) -> tuple[Dataset, TablePreparation]:
        """Read a training table."""
        table = source.table()
        options.refuse_image_options(source.where)
        if _is_large(table, options.stream):
            data, encoding = _on_disk(source, table, options)
            return data, cls(encoding)
        encoding, table = learn_table(table, options)
        return encoding.apply(table, name=source.name), cls(encoding)

    def _read(self, source: Source, later: LaterOptions, labelled: bool, progress: bool) -> Dataset:
        if source.kind != "table":
            raise self._other_kind(source)
        table, encoding = source.table(), self.encoding
        if later.label is not None:
            encoding = encoding.for_label(table, later.label)
        if _is_large(table, later.stream):
            return _on_disk(source, table, later.as_read_options(), encoding, labelled=labelled)[0]
        return encoding.apply(table, name=source.name, labelled=labelled, regression=later.regression)


def _is_large(table: Table, stream: Stream) -> bool:
    return stream == "always" or (stream == "auto" and bool(table.files) and table.size > STREAM_BYTES)


def _on_disk(
    source: Source, table: Table, options: ReadOptions, encoding: TableEncoding | None = None, *, labelled: bool = True
) -> tuple[Dataset, TableEncoding]:
    """Return a table with its rows on disk, encoded now or before; without an encoding it is learned first."""

    def make(folder: Path) -> dict[str, Any]:
        known, whole = (encoding, table) if encoding is not None else learn_table(table, options)
        pa.default_memory_pool().release_unused()  # of the rows that were looked at
        encoder = TableEncoder(known, whole, labelled=labelled)
        write_rows(folder / "rows.npy", encoder.blocks(), shape=known.shape, dtype=known.precision)
        y = encoder.targets(regression=options.regression)
        pa.default_memory_pool().release_unused()
        if y is not None:
            np.save(folder / "y.npy", y)
        return {"encoding": asdict(encoder.encoding), "notes": encoder.notes(), "labels": y is not None}

    if encoding is None:  # of the options, those that decide what is learned
        how = {each.name: getattr(options, each.name) for each in fields(ReadOptions) if each.name not in _ASIDE}
    else:
        how = asdict(encoding)
    about = [str(source.path.resolve()), table.names, how, labelled]
    place = place_of("rows", source.name, about)
    waiting = f"waiting for another process, which reads {table.where}"
    folder, found = kept(place, [states_of(table.files), about], make, waiting=waiting)
    own = _restored(TableEncoding, found["encoding"])
    size = (folder / "rows.npy").stat().st_size / 1e9
    note = f"read in batches (data.stream): {size:.2g} GB of rows stay on disk, in {folder.parent} (PINOISE_CACHE)"
    x = read_npy(folder / "rows.npy").train.x
    y = np.load(folder / "y.npy") if found["labels"] else None
    return own.dataset(x, y, [*found["notes"], note], name=source.name), own


@dataclass(frozen=True)
class ArrayPreparation(Preparation):
    """Training had arrays, images or a set of the catalogue: the shape and the labels are remembered.

    Where samples are images, arrays and folders of images fit. A set of the catalogue has no columns to compare a table
    with, which is then encoded by what it holds itself.
    """

    encoding: ArrayEncoding
    kind: Literal["array", "images", "catalogue"] = "array"
    corrupt: Corrupt = ReadOptions.corrupt

    @property
    def description(self) -> str:
        """What training had, for messages."""
        what = "images" if self.kind == "images" else "an array of samples"
        return f"{what} of shape {self.encoding.raw_shape}"

    @classmethod
    def learn(cls, source: Source, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, ArrayPreparation]:
        """Read training arrays, a folder of images, or a data set of the catalogue."""
        options.refuse_table_options(source.where, fills_gaps=source.kind == "array")
        if source.kind == "catalogue":
            options.refuse_image_options(source.where, sized=True)
            data = load(source.name, size=options.height_and_width, progress=progress)
            return data, cls(ArrayEncoding(data.shape, bool(sp.issparse(data.train.x))), "catalogue")
        if source.kind == "images":
            raw = read_image_folder(source.path, options, progress=progress)
        else:
            options.refuse_image_options(source.where)
            raw = source.arrays()
        data, encoding = learn_arrays(raw, name=source.name, where=source.where, options=options)
        return data, cls(encoding, "images" if source.kind == "images" else "array", options.corrupt)

    def _read(self, source: Source, later: LaterOptions, labelled: bool, progress: bool) -> Dataset:
        encoding = self.encoding
        if source.kind == "table" and self.kind == "catalogue":
            return TablePreparation.learn(source, later.as_read_options())[0]
        if source.kind == "array":
            raw = source.arrays(n_features=self.shape[0], first_index=encoding.first_index)
        elif source.kind == "images" and len(self.shape) > 1 and self.shape[2:] in ((), (3,)):
            height, width, *channels = self.shape
            later = replace(later, corrupt=later.corrupt or self.corrupt)
            options = replace(later.as_read_options(), size=(height, width), color="rgb" if channels else "gray")
            raw = read_image_folder(source.path, options, progress=progress)
        else:
            raise self._other_kind(source)
        return encoding.apply(raw, name=source.name, where=source.where, labelled=labelled)


def check_regression(regression: bool | None, data: Dataset, *, where: str) -> None:
    """Refuse labels that are not what a user says they are: a measurement, or classes; None says nothing."""
    if regression is None or (regression == data.measures and data.train.y is not None):
        return
    what = "classes as labels" if regression else "a measurement as labels"
    what = "no labels; name their column with --label" if data.train.y is None else what
    raise UserError(f"regression is {str(regression).lower()}, but {where} has {what}.")


def prepare(given: object, options: ReadOptions, *, progress: bool = False) -> tuple[Dataset, Preparation]:
    """Read training data from any source, and return it with the preparation that reads later data the same way."""
    source = find_source(given)
    if options.stream == "always" and source.kind not in ("table", "images") and source.path.suffix != ".npy":
        raise UserError(f"{source.where} cannot be read in batches, so stream='always' cannot apply: leave it out.")
    if source.kind == "table":
        read: tuple[Dataset, Preparation] = TablePreparation.learn(source, options)
    else:
        read = ArrayPreparation.learn(source, options, progress=progress)
    check_regression(options.regression, read[0], where=source.where)
    return read


def preparation_from_json(stored: object) -> Preparation:
    """Return the preparation whose ``to_json`` is given. Refuse any other value, as a file may come from anyone.

    >>> preparation_from_json({"kind": "array", "encoding": {"shape": [3], "sparse": "no"}})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: the stored preparation is damaged: it has no sound entry 'sparse'.
    """
    either = Annotated[TablePreparation | ArrayPreparation, Field(discriminator="kind")]
    return cast(Preparation, _restored(either, stored))


def _restored(kind: Any, stored: object) -> Any:
    """Return the object of which ``dataclasses.asdict`` is stored."""
    try:
        found = TypeAdapter(kind).validate_json(json.dumps(stored), strict=True)
    except ValidationError as error:
        entry = next((str(part) for part in reversed(error.errors()[0]["loc"]) if isinstance(part, str)), "kind")
        raise UserError(f"the stored preparation is damaged: it has no sound entry {entry!r}.") from None
    if json.loads(json.dumps(asdict(found))) != json.loads(json.dumps(stored)):
        raise UserError("the stored preparation is damaged: it has entries of another kind.")
    return found
