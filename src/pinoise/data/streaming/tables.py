"""Tables with named columns in pieces: what is learned from them, and their rows on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow.parquet

from pinoise.data.dataset import Dataset
from pinoise.data.encoding.columns import CategoricalColumn
from pinoise.data.encoding.learning import learn_table
from pinoise.data.encoding.stored import restored
from pinoise.data.encoding.tables import TableEncoder, TableEncoding, WithoutColumns
from pinoise.data.formats.csv_pieces import open_csv
from pinoise.data.formats.parquet import open_parquet
from pinoise.data.formats.raw import Table
from pinoise.data.options import LaterOptions, ReadOptions
from pinoise.data.source import Source
from pinoise.data.streaming.cache import Kept, Piece, StreamCache
from pinoise.data.streaming.records import Fitting

_PIECE_VALUES = 1 << 21  # features encoded at a time
_ROW_GROUP = 1 << 16  # rows of a scratch file
_DECIDING = ("label", "regression", "missing", "categorical", "drop", "keep", "text", "max_categories")


def learn_streamed_table(source: Source, options: ReadOptions) -> tuple[Dataset, TableEncoding]:
    """Learn the columns of a training table in passes over it, and return it with its rows on disk."""
    chosen = asdict(options)
    cache = StreamCache.of(source, {name: chosen[name] for name in _DECIDING}, folder=options.cache)

    def convert() -> Kept:
        with table_in_pieces(source, text=(*options.categorical, *options.text), cache=cache) as raw:
            encoding, learned = learn_table(raw, options, where=source.where)
            return _converted(raw, encoding, cache, learned=learned, where=source.where)

    kept = cache.kept_or(convert)
    encoding = restored(TableEncoding, kept.about["encoding"])
    return _dataset(source, encoding, kept, cache), encoding


def read_streamed_table(source: Source, encoding: TableEncoding, later: LaterOptions, *, labelled: bool) -> Dataset:
    """Return a later table as training's was encoded, with its rows on disk."""
    how = {"encoding": asdict(encoding), "label": later.label, "regression": later.regression, "drop": later.drop}
    cache = StreamCache.of(source, {**how, "labelled": labelled}, folder=later.cache)

    def convert() -> Kept:
        with table_in_pieces(source, text=encoding.text_columns, cache=cache) as whole:
            raw = WithoutColumns(whole, later.drop, where=source.where)
            own = encoding.with_dates_of(raw)
            if later.label is not None:
                own = own.with_label(raw, later.label, regression=later.regression, where=source.where)
            if labelled:
                own.check_labels(raw, where=source.where)
            return _converted(raw, own, cache, where=source.where, labelled=labelled)

    kept = cache.kept_or(convert)
    return _dataset(source, restored(TableEncoding, kept.about["encoding"]), kept, cache)


@contextmanager
def table_in_pieces(source: Source, *, text: tuple[str, ...], cache: StreamCache | None = None) -> Iterator[Table]:
    """Open a table to be read in pieces. With a ``cache``, text is parsed once into a scratch file beside it."""
    if source.file_format == "parquet":
        yield open_parquet(source.path)
        return
    table = open_csv(source.path, text=text)
    if cache is None:
        yield table
        return
    with cache.scratch() as path:
        writer = None
        try:
            for _, piece in table.pieces(table.names):
                writer = writer or pyarrow.parquet.ParquetWriter(path, piece.schema, compression="lz4")
                writer.write_table(piece, row_group_size=_ROW_GROUP)
        finally:
            if writer is not None:
                writer.close()
        typed = open_parquet(path)
        yield _Parsed(typed, table.notes)


@dataclass(frozen=True)
class _Parsed(Table):
    """A file of text that was parsed into another one."""

    typed: Table
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return self.typed.names

    @property
    def rows(self) -> int:
        return self.typed.rows

    def kind_of(self, name: str) -> Any:
        return self.typed.kind_of(name)

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        return self.typed.pieces(columns)


def _encoded_pieces(encoder: TableEncoder, encoding: TableEncoding) -> Iterator[Piece]:
    """Yield bounded pieces of a table as features and labels."""
    width = len(encoding.feature_names)
    step = max(1, _PIECE_VALUES // width)
    for first, piece in encoder.pieces():
        for start in range(0, len(piece), step):
            part = piece.slice(start, step)
            x = np.empty((len(part), width))
            yield Piece(x, encoder.encode(part, first + start, x))


def _converted(
    raw: Table,
    encoding: TableEncoding,
    cache: StreamCache,
    *,
    where: str,
    learned: tuple[str, ...] = (),
    labelled: bool = True,
) -> Kept:
    codes, start = [], 0
    for column in encoding.columns:
        stop = start + len(column.features)
        codes += [(start, stop)] if isinstance(column, CategoricalColumn) else []
        start = stop
    fitting = Fitting(len(encoding.feature_names), codes=tuple(codes))
    for piece in _encoded_pieces(TableEncoder(encoding, raw, where=where, labelled=labelled), encoding):
        fitting.add(piece.x)
    layout = fitting.layout()
    encoder = TableEncoder(encoding, raw, where=where, labelled=labelled)
    cache.write(_encoded_pieces(encoder, encoding), layout, rows=raw.rows)
    return cache.finish(layout, rows=raw.rows, encoding=asdict(encoding), notes=encoder.notes(learned))


def _dataset(source: Source, encoding: TableEncoding, kept: Kept, cache: StreamCache) -> Dataset:
    notes = [*kept.about["notes"], cache.note]
    return encoding.dataset(kept.part, notes, name=source.name)
