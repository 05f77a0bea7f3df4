"""Text in svmlight's format, ``label [qid:query] index:value ...``, parsed by scikit-learn block by block."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from pinoise.data.dataset import RawArrays, RawPart
from pinoise.data.formats.archives import open_compressed
from pinoise.data.messages import first_line, free_memory
from pinoise.errors import UserError

_DENSE = 0.5  # share of written cells from which a dense array is the smaller one
_MOST_FEATURES = np.iinfo(np.int32).max
_BLOCK = 64 << 20  # bytes of text parsed at a time


def read_svmlight(path: Path, *, n_features: int | None = None, first_index: int | None = None) -> RawArrays:
    """Read a file, compressed or not; queries become groups.

    ``first_index`` is 0 or 1, the number of the first feature, found from the file when None: later files of the
    same set must be read with the first one's, as they may not use every feature. So must ``n_features``.
    """
    free = free_memory()
    excess = (
        "with its numbers it takes more than the memory that is free here; read it in parts with scikit-learn's "
        "load_svmlight_file(..., offset=, length=) and write them as one .npy file or as Parquet, whose rows are read "
        "when they are needed"
    )
    # Numbers take about as much as their text, and twice that while blocks are joined.
    with open_compressed(path, limit=None if free is None else free // 2, excess=excess) as stream:
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
    """Return the rows of a stream; with ``dense``, each block of text becomes dense before the next one is read.

    Without ``dense``, rows are sparse unless the features are not known yet and at least half of the cells are
    written. ``dense`` needs ``n_features`` and ``first_index``.

    >>> text = io.BytesIO(b"2 qid:7 1:0.5 3:1\\n0 qid:8 2:4\\n")
    >>> rows = parse_svmlight(text, where="toy").train
    >>> rows.x.tolist(), rows.y.tolist(), rows.groups.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2.0, 0.0], [7, 8])
    """
    blocks: list[Any] = []
    lines_before = rows_before = 0
    while lines := stream.readlines(block):
        x, y, queries = _parsed(lines, where=where, before=lines_before)
        if dense and n_features is not None and first_index is not None:
            x = _numbered(x, first_index, n_features, before=rows_before, where=where).toarray()
        blocks.append((x, y, queries))
        lines_before, rows_before = lines_before + len(lines), rows_before + len(y)
    if not rows_before:
        raise UserError(f"{where} holds no rows.")
    parts, labels, asked = zip(*blocks, strict=True)
    y, queries = np.concatenate(labels), np.concatenate(asked)
    if len(queries) not in (0, len(y)):
        raise UserError(
            f"{where} has a query (qid) on {len(queries)} of its {len(y)} rows: give all rows one, or none."
        )
    if dense:
        samples: Any = np.concatenate(parts)
    else:
        x = sp.vstack(parts, format="csr")
        if not x.nnz:
            raise UserError(f"{where} has no feature in any row: a line is 'label index:value index:value ...'.")
        first_index = min(int(x.indices.min()), 1) if first_index is None else first_index
        width = int(x.indices.max()) - first_index + 1 if n_features is None else n_features
        samples = _numbered(x, first_index, width, before=0, where=where)
        if n_features is None and samples.nnz >= _DENSE * len(y) * width:
            samples = samples.toarray()
    return RawArrays(RawPart(samples, y, queries if len(queries) else None), first_index=first_index)


def _parsed(lines: list[bytes], *, where: str, before: int) -> Any:
    """Return samples with features numbered as in the file, labels and queries."""
    from sklearn.datasets import load_svmlight_file

    text = io.BytesIO(b"".join(lines))
    try:
        return load_svmlight_file(text, dtype=np.float32, n_features=_MOST_FEATURES, zero_based=True, query_id=True)
    except (ValueError, OverflowError) as error:
        number = text.getvalue().count(b"\n", 0, text.tell() - 1)  # before the line at which reading stopped
        found = lines[number].strip().decode("utf-8", errors="replace")
        raise UserError(
            f"{where}, line {before + number + 1}: {found[:60]!r} was found instead of 'label [qid:query] index:value "
            f"index:value ...' with rising indices below {_MOST_FEATURES} ({first_line(error)[:80]})."
        ) from error


def _numbered(x: Any, first: int, width: int, *, before: int, where: str) -> sp.csr_array:
    """Number the columns from 0; a feature that is not among the ``width`` allowed ones is an error."""
    outside = np.flatnonzero((x.indices < first) | (x.indices >= first + width))
    if outside.size:
        row = before + int(np.searchsorted(x.indptr, outside[0], side="right"))
        raise UserError(
            f"{where}: data row {row} has feature {x.indices[outside[0]]}: allowed are {first} to {first + width - 1}."
        )
    return sp.csr_array((x.data, x.indices - first, x.indptr), shape=(x.shape[0], width))
