"""Dense tables in svmlight's text, parsed block by block so that memory holds little beside the result."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError

_BLOCK = 64 << 20  # bytes of text parsed at a time


def read_dense(
    stream: BinaryIO, *, label: str, features: int, queries: bool = False, block: int = _BLOCK
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Return the rows (n, features), their integer targets and, if asked, their query numbers.

    >>> text = io.BytesIO(b"2 qid:7 1:0.5 3:1\\n0 qid:8 2:4\\n")
    >>> x, y, qid = read_dense(text, label="toy", features=3, queries=True)
    >>> x.tolist(), y.tolist(), qid.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]], [2, 0], [7, 8])
    """
    xs: list[npt.NDArray[np.float32]] = []
    ys: list[npt.NDArray[np.float64]] = []
    qids: list[npt.NDArray[np.int64]] = []
    line = 1
    while lines := stream.readlines(block):
        x, y, qid = _parse(lines, label=label, first=line, features=features)
        if queries and len(qid) != len(y):
            raise UserError(f"{label}, line {line} or after: every row needs a query, written as qid:number.")
        xs.append(x.toarray())
        ys.append(y)
        qids.append(qid)
        line += len(lines)
    y = np.concatenate(ys) if ys else np.zeros(0)
    if not len(y):
        raise UserError(f"{label} holds no rows.")
    if not np.array_equal(y, np.rint(y)):
        row = int(np.flatnonzero(y != np.rint(y))[0])
        raise UserError(f"{label}, row {row + 1}: the label {y[row]} is not a whole number.")
    return _join(xs), y.astype(np.int64), np.concatenate(qids).astype(np.int64) if queries else None


def _parse(lines: list[bytes], *, label: str, first: int, features: int) -> Any:
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(
            io.BytesIO(b"".join(lines)),
            n_features=features,
            dtype=np.float32,
            zero_based=False,
            query_id=True,
        )
    except (ValueError, OverflowError, IndexError) as error:
        if len(lines) == 1:
            raise UserError(f"{label}, line {first}: this is not a row of svmlight text ({error}).") from error
        # Halving finds the line at fault without a parser of our own.
        half = len(lines) // 2
        _parse(lines[:half], label=label, first=first, features=features)
        _parse(lines[half:], label=label, first=first + half, features=features)
        raise UserError(f"{label}, from line {first} on: this is not svmlight text ({error}).") from error


def _join(blocks: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """Concatenate and free each block once it is copied, so that the table is not held twice."""
    if len(blocks) == 1:
        return blocks[0]
    table = np.empty((sum(map(len, blocks)), blocks[0].shape[1]), dtype=np.float32)
    end = len(table)
    while blocks:
        block = blocks.pop()
        table[end - len(block) : end] = block
        end -= len(block)
    return table
