"""Text in svmlight's format, ``label [qid:query] index:value ...``, parsed by scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from pinoise.data.checks import free_memory
from pinoise.data.dataset import Array, Part, RawArrays
from pinoise.data.formats.opened import open_compressed
from pinoise.errors import UserError, first_line

_MOST_FEATURES = np.iinfo(np.int32).max


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
    where = str(path)
    # Numbers take about as much as their text, and as much again while they are numbered.
    with open_compressed(path, limit=free_memory() // 2) as stream:
        x, y, queries = parse_rows(stream, where=where)
    if not x.nnz:
        raise UserError(f"{where} has no feature in any row: a line is 'label index:value index:value ...'.")
    first = min(int(x.indices.min()), 1) if first_index is None else first_index
    width = int(x.indices.max()) - first + 1 if n_features is None else n_features
    x = numbered(x, first, width, where=where)
    if n_features is None and x.nnz >= len(y) * width / 2:  # from here on a dense array is the smaller one
        x = x.toarray()
    return RawArrays(Part(x, y, queries), first_index=first)


class _Lines:
    """The lines of a stream, of which the last one that was read is known by its number."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.number, self.line = stream, 0, b""
        self.read = stream.read  # by which scikit-learn knows a stream

    def __iter__(self) -> Iterator[bytes]:
        for self.line in self._stream:  # noqa: B020
            self.number += 1
            yield self.line


def parse_rows(stream: BinaryIO, *, where: str) -> tuple[Any, Array, Array | None]:
    """Return samples with features numbered as in the file, labels, and queries if there are any."""
    from sklearn.datasets import load_svmlight_file

    lines = _Lines(stream)
    try:
        how = {"dtype": np.float32, "n_features": _MOST_FEATURES, "zero_based": True, "query_id": True}
        x, y, queries = load_svmlight_file(lines, **how)
    except UserError:
        raise
    except (ValueError, OverflowError) as error:
        found = lines.line.strip().decode("utf-8", errors="replace")[:60]
        wanted = f"'label [qid:query] index:value ...' with rising indices ({first_line(error)[:80]})"
        raise UserError(f"{where}, line {lines.number}: {found!r} was found instead of {wanted}.") from error
    if not len(y):
        raise UserError(f"{where} holds no rows.")
    if len(queries) not in (0, len(y)):
        raise UserError(f"{where} has a query (qid) on {len(queries)} of its {len(y)} rows: give one to all, or none.")
    return x, y, queries if len(queries) else None


def numbered(x: Any, first: int, width: int, *, where: str) -> sp.csr_array:
    """Number the columns from 0; a feature that is not among the ``width`` allowed ones is an error."""
    outside = np.flatnonzero((x.indices < first) | (x.indices >= first + width))
    if outside.size:
        row = int(np.searchsorted(x.indptr, outside[0], side="right"))
        found, last = x.indices[outside[0]], first + width - 1
        raise UserError(f"{where}: data row {row} has feature {found}: allowed are {first} to {last}.")
    return sp.csr_array((x.data, x.indices - first, x.indptr), shape=(x.shape[0], width))
