"""Files in svmlight's format in pieces: how wide they are, what their labels are, and their rows on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from pinoise.data.checks import check_finite
from pinoise.data.dataset import Dataset
from pinoise.data.encoding.arrays import ArrayEncoding, has_labels
from pinoise.data.encoding.labels import LabelStudy, measurement_note
from pinoise.data.encoding.stored import restored
from pinoise.data.formats.archives import open_compressed
from pinoise.data.formats.svmlight import DENSE, Block, check_queries, no_features, numbered, svmlight_blocks
from pinoise.data.formats.unchanged import states_of
from pinoise.data.options import LaterOptions, ReadOptions
from pinoise.data.source import Source
from pinoise.data.streaming.cache import Kept, Piece, StreamCache
from pinoise.data.streaming.records import single_precision
from pinoise.errors import rows_before

_TEXT_BLOCK = 8 << 20  # bytes of text parsed at a time
_PIECE_VALUES = 1 << 21  # features in a dense piece, because the zeros of a row take no text


def learn_streamed_arrays(source: Source, options: ReadOptions) -> tuple[Dataset, ArrayEncoding] | None:
    """Return the rows of a training file in svmlight's format, on disk; None if they are mostly zeros."""
    if options.label is not None:
        raise has_labels(options.label, source.where)
    how = {"svmlight": None, "regression": options.regression}
    cache = StreamCache.of(source, how, folder=options.cache)

    def convert() -> Kept | None:
        found = _survey(source)
        labels = found.labels.learned(where=f"{source.where}, labels", regression=options.regression)
        if found.written < DENSE * found.rows * found.width:
            return None
        encoding = ArrayEncoding(shape=(found.width,), labels=labels, first_index=found.first_index)
        notes = [] if options.regression else measurement_note(labels)
        return _converted(source, encoding, cache, rows=found.rows, notes=notes)

    kept = cache.kept_or(convert)
    if kept is None:
        return None
    encoding = restored(ArrayEncoding, kept.about["encoding"])
    return _array_dataset(source, encoding, kept, cache), encoding


def read_streamed_arrays(
    source: Source, encoding: ArrayEncoding, later: LaterOptions, *, labelled: bool, own_classes: bool
) -> Dataset:
    """Return a later file in svmlight's format with its rows on disk; with ``own_classes``, others than training's."""
    if later.label is not None:
        raise has_labels(later.label, source.where)
    how = {"svmlight": asdict(encoding), "labelled": labelled, "own_classes": own_classes}
    cache = StreamCache.of(source, how, folder=later.cache)

    def convert() -> Kept:
        where = f"{source.where}, labels"
        found, labels = _survey(source), encoding.labels
        if labelled and own_classes and not (labels is not None and found.labels.known_to(labels)):
            labels = found.labels.learned(where=where)
        elif labelled and labels is not None:
            found.labels.check(where=where)
        first = found.first_index if encoding.first_index is None else encoding.first_index
        own = replace(encoding, labels=labels, first_index=first)
        return _converted(source, own, cache, rows=found.rows, labelled=labelled)

    kept = cache.kept_or(convert)
    return _array_dataset(source, restored(ArrayEncoding, kept.about["encoding"]), kept, cache)


class _Survey(NamedTuple):
    rows: int
    width: int  # the number of features
    first_index: int  # the number of the first one
    written: int  # cells
    labels: LabelStudy


def _survey(source: Source) -> _Survey:
    """Look at all rows of a file."""
    where = source.where
    lowest, highest, written, rows, asked = np.iinfo(np.int64).max, -1, 0, 0, 0
    study = LabelStudy()
    for block in _blocks(source):
        if block.x.nnz:
            lowest = min(lowest, int(block.x.indices.min()))
            highest = max(highest, int(block.x.indices.max()))
        written, rows, asked = written + block.x.nnz, block.first + len(block.y), asked + len(block.queries)
        study.add(block.y, where=f"{where}, labels")
    check_queries(asked, rows, where=where)
    if not written:
        raise no_features(where)
    first_index = min(lowest, 1)
    return _Survey(rows, highest - first_index + 1, first_index, written, study)


def _blocks(source: Source) -> Iterator[Block]:
    (state,) = states_of([source.path])
    with open_compressed(source.path, limit=None) as stream:
        yield from svmlight_blocks(stream, where=source.where, block=_TEXT_BLOCK)
    state.check()


def _converted(
    source: Source,
    encoding: ArrayEncoding,
    cache: StreamCache,
    *,
    rows: int,
    notes: Sequence[str] = (),
    labelled: bool = True,
) -> Kept:
    where, (width,) = source.where, encoding.shape
    found = 0

    def pieces() -> Iterator[Piece]:
        nonlocal found
        labels = encoding.labels if labelled else None
        step = max(1, _PIECE_VALUES // width)
        for block in _blocks(source):
            rows = numbered(block, encoding.first_index or 0, width, where=where)
            check_finite(rows, encoding.feature_names, where=where, first=block.first)
            for start in range(0, len(block.y), step):
                some = slice(start, start + step)
                with rows_before(block.first + start):
                    y = None if labels is None else labels.targets(block.y[some], where=f"{where}, labels")
                yield Piece(rows[some].toarray(), y, block.queries[some] if len(block.queries) else None)
            found = block.first + len(block.y)

    layout = single_precision(width)
    cache.write(pieces(), layout, rows=rows)
    if found != rows:
        raise states_of([source.path])[0].changed()
    return cache.finish(layout, rows=rows, encoding=asdict(encoding), notes=list(notes))


def _array_dataset(source: Source, encoding: ArrayEncoding, kept: Kept, cache: StreamCache) -> Dataset:
    names = None if encoding.labels is None else encoding.labels.class_names
    notes = (*kept.about["notes"], cache.note)
    return Dataset(source.name, train=kept.part, feature_names=encoding.feature_names, class_names=names, notes=notes)
