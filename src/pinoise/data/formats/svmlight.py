"""Text in svmlight format, ``label [qid:query] index:value ...``, parsed by scikit-learn block by block."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp

from pinoise.data.formats.archives import open_compressed
from pinoise.data.formats.raw import Array, RawArrays, RawPart
from pinoise.data.limits import free_memory
from pinoise.errors import UserError

DENSE = 0.5  # share of written cells from which a dense array is the smaller one
LARGEST_INDEX = np.iinfo(np.int32).max
_DIGITS = len(str(LARGEST_INDEX))  # Python does not turn thousands of digits into a number
_BLOCK = 64 << 20  # bytes of text parsed at a time


def read_svmlight(path: Path, *, n_features: int | None = None, first_index: int | None = None) -> RawArrays:
    """Read a file, compressed or not; queries become groups.

    ``first_index`` is 0 or 1, the number of the first feature, found from the file when None: later files of the
    same set must be read with the first one's, as they may not use every feature. So must ``n_features``.
    """
    most = free_memory()
    with open_compressed(path, limit=None if most is None else 4 * most) as stream:  # numbers take less than their text
        return parse_svmlight(stream, where=str(path), n_features=n_features, first_index=first_index)


def parse_svmlight(
    stream: BinaryIO,
    *,
    where: str,
    n_features: int | None = None,
    first_index: int | None = None,
    dense: bool = False,
    block: int = _BLOCK,
) -> RawArrays:
    """Return the rows of a stream; with ``dense``, memory never holds more than the array and one block of text.

    Without ``dense``, rows are sparse unless the features are not known yet and at least half of the cells are
    written. ``dense`` needs ``n_features`` and ``first_index``.

    >>> text = io.BytesIO(b"2 qid:7 1:0.5 3:1\\n0 qid:8 2:4\\n")
    >>> rows = parse_svmlight(text, where="toy").train
    >>> rows.x.tolist(), rows.y.tolist(), rows.groups.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2.0, 0.0], [7, 8])
    """
    blocks: list[Any] = []  # (rows, features) dense, or as scikit-learn returns them
    labels: list[Array] = []
    queries: list[Array] = []
    rows_before = 0
    for found in svmlight_blocks(stream, where=where, block=block):
        x, rows_before = found.x, found.first + len(found.y)
        if dense and first_index is not None and n_features is not None:
            x = numbered(found, first_index, n_features, where=where).toarray()
        blocks.append(x)
        labels.append(found.y)
        queries.append(found.queries)
    asked = sum(len(qid) for qid in queries)
    check_queries(asked, rows_before, where=where)
    samples: Any = _join(blocks)
    if not dense:
        if samples.nnz == 0:
            raise no_features(where)
        first_index = min(int(samples.indices.min()), 1) if first_index is None else first_index
        width = int(samples.indices.max()) - first_index + 1 if n_features is None else n_features
        samples = _matrix(samples, first_index, width, rows_before=0, where=where)
        if n_features is None and samples.nnz >= DENSE * rows_before * width:
            samples = samples.toarray()
    groups = np.concatenate(queries).astype(np.int64) if asked else None
    return RawArrays(RawPart(samples, np.concatenate(labels), groups), first_index=first_index)


class Block(NamedTuple):
    """Rows that follow each other, as scikit-learn returns them: features are numbered as in the file."""

    first: int  # row
    x: Any
    y: Array
    queries: Array


def svmlight_blocks(stream: BinaryIO, *, where: str, block: int = _BLOCK) -> Iterator[Block]:
    """Yield the rows of a stream, ``block`` bytes of text at a time; a stream without rows is an error."""
    lines_before = rows_before = 0
    while lines := stream.readlines(block):
        x, y, queries = _parse(lines, where=where, lines_before=lines_before)
        if len(y):
            yield Block(rows_before, x, y, queries)
        lines_before, rows_before = lines_before + len(lines), rows_before + len(y)
    if rows_before == 0:
        raise UserError(f"{where} holds no rows.")


def check_queries(asked: int, rows: int, *, where: str) -> None:
    """Raise an error unless all rows have a query, or none has."""
    if asked not in (0, rows):
        raise UserError(f"{where} has a query (qid) on {asked} of its {rows} rows: give all rows one, or none.")


def no_features(where: str) -> UserError:
    """Return the error for a file of labels alone."""
    return UserError(f"{where} has no feature in any row: a line is 'label index:value index:value ...'.")


def numbered(block: Block, first: int, width: int, *, where: str) -> sp.csr_array:
    """Return the samples of a block with features numbered from 0."""
    return _matrix(block.x, first, width, rows_before=block.first, where=where)


def _parse(lines: list[bytes], *, where: str, lines_before: int) -> Any:
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(io.BytesIO(b"".join(lines)), dtype=np.float32, zero_based=True, query_id=True)
    except (ValueError, OverflowError) as error:
        for number, line in enumerate(lines, start=lines_before + 1):
            problem = line_problem(line.decode("utf-8", errors="replace"))
            if problem:
                raise UserError(
                    f"{where}, line {number}: {problem}; a line is 'label [qid:query] index:value ...'."
                ) from error
        raise UserError(f"{where}, from line {lines_before + 1} on, is not in svmlight format: {error}.") from error


def _matrix(x: Any, first: int, width: int, *, rows_before: int, where: str) -> sp.csr_array:
    """Number the columns from 0; a feature that is not among the ``width`` allowed ones is an error."""
    outside = np.flatnonzero((x.indices < first) | (x.indices >= first + width))
    if outside.size:
        row = rows_before + int(np.searchsorted(x.indptr, outside[0], side="right"))
        raise UserError(
            f"{where}: data row {row} has feature {x.indices[outside[0]]}: allowed are {first} to {first + width - 1}."
        )
    return sp.csr_array((x.data, x.indices - first, x.indptr), shape=(x.shape[0], width))


def _join(blocks: list[Any]) -> Any:
    """Concatenate and free each dense block once it is copied, so that the array is not held twice."""
    if len(blocks) == 1:
        return blocks[0]
    if sp.issparse(blocks[0]):
        width = max(block.shape[1] for block in blocks)
        for block in blocks:
            block.resize(block.shape[0], width)
        return sp.vstack(blocks, format="csr")
    table = np.empty((sum(map(len, blocks)), blocks[0].shape[1]), dtype=np.float32)
    end = len(table)
    while blocks:
        block = blocks.pop()
        table[end - len(block) : end] = block
        end -= len(block)
    return table


def line_problem(line: str) -> str | None:
    """Say what is wrong with one line of an svmlight file, or None.

    >>> line_problem("1 3:0.5 2:1")
    'feature 2 does not come after feature 3'
    """
    words = line.split("#", 1)[0].split()
    if not words:
        return None
    label, *pairs = words
    if not _is_float(label):
        return f"the label {label!r} is not a number"
    if pairs and pairs[0].startswith("qid:"):
        query, *pairs = pairs
        if not query[4:].isdecimal():
            return f"the query {query!r} is not a whole number"
    last = -1
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if not colon:
            return f"{pair!r} is not index:value"
        if index.startswith("-") and index[1:].isdecimal():
            return f"the feature index {index} is negative"
        if not index.isdecimal() or len(index) > _DIGITS or int(index) > LARGEST_INDEX:
            return f"the feature index {index!r} is not a whole number up to {LARGEST_INDEX}"
        if int(index) <= last:
            return f"feature {index} does not come after feature {last}"
        if not _is_float(value):
            return f"the value {value!r} of feature {index} is not a number"
        last = int(index)
    return None


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
