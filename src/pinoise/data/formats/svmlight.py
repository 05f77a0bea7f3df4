"""Text in svmlight's format, ``label [qid:query] index:value ...``, parsed by scikit-learn block by block."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from pinoise.data.dataset import Array, RawArrays, RawPart
from pinoise.data.formats.compressed import open_compressed
from pinoise.data.messages import first_line, free_memory
from pinoise.errors import UserError

_MOST_FEATURES = np.iinfo(np.int32).max
_BLOCK = 64 << 20  # bytes of text parsed at a time


def read_svmlight(path: Path, *, n_features: int | None = None, first_index: int | None = None) -> RawArrays:
    """Read a file, compressed or not; queries become groups.

    ``first_index`` is 0 or 1, the number of the first feature, found from the file when None: later files of the
    same set must be read with the first one's, as they may not use every feature. So must ``n_features``. Rows are
    sparse unless ``n_features`` is not known yet and half of the cells are written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.svm")
    ...     _ = path.write_text("2 qid:7 1:0.5 3:1\\n0 qid:8 2:4\\n")
    ...     rows = read_svmlight(path).train
    >>> rows.x.tolist(), rows.y.tolist(), rows.groups.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2.0, 0.0], [7, 8])
    """
    free, where = free_memory(), str(path)
    # Numbers take about as much as their text, and twice that while blocks are joined.
    with open_compressed(path, limit=None if free is None else free // 2) as stream:
        parts, y, queries = _blocks(stream, where)
    x = sp.vstack(parts, format="csr")
    if not x.nnz:
        raise UserError(f"{where} has no feature in any row: a line is 'label index:value index:value ...'.")
    first = min(int(x.indices.min()), 1) if first_index is None else first_index
    width = int(x.indices.max()) - first + 1 if n_features is None else n_features
    x = _numbered(x, first, width, before=0, where=where)
    if n_features is None and x.nnz >= len(y) * width / 2:  # from here on a dense array is the smaller one
        x = x.toarray()
    return RawArrays(RawPart(x, y, queries), first_index=first)


def parse_dense(stream: BinaryIO, *, where: str, n_features: int) -> RawPart:
    """Return the rows of a stream, whose features count from 1; each block is dense before the next one is read."""
    parts, y, queries = _blocks(stream, where, n_features)
    return RawPart(np.concatenate(parts), y, queries)


def _blocks(stream: BinaryIO, where: str, width: int | None = None) -> tuple[list[Any], Array, Array | None]:
    """Return samples in blocks, labels and queries; with a width samples are dense, else numbered as in the file."""
    parts, labels, asked = [], [], []
    n_lines = n_rows = 0
    while lines := stream.readlines(_BLOCK):
        x, y, queries = _parsed(lines, where=where, before=n_lines)
        if width is not None:
            x = _numbered(x, 1, width, before=n_rows, where=where).toarray()
        parts.append(x)
        labels.append(y)
        asked.append(queries)
        n_lines, n_rows = n_lines + len(lines), n_rows + len(y)
    if not n_rows:
        raise UserError(f"{where} holds no rows.")
    y, queries = np.concatenate(labels), np.concatenate(asked)
    if len(queries) not in (0, n_rows):
        raise UserError(f"{where} has a query (qid) on {len(queries)} of its {n_rows} rows: give one to all, or none.")
    return parts, y, queries if len(queries) else None


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
