"""Files in svmlight format, ``label [qid:query] index:value ...``, read by scikit-learn."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from pinoise.data.arrays import RawArrays, RawPart
from pinoise.data.files import open_plain
from pinoise.errors import UserError

DENSE = 0.5  # share of written cells from which a dense array is the smaller one
LARGEST_INDEX = np.iinfo(np.int32).max


def read_svmlight(path: Path, *, n_features: int | None = None, first_index: int | None = None) -> RawArrays:
    """Read a file in svmlight format; queries become groups.

    ``first_index`` is 0 or 1, the number of the first feature, found from the file when None: later files of the
    same set must be read with the first one's, as they may not use every feature. So must ``n_features``.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        x, y, queries = load_svmlight_file(str(path), dtype=np.float32, zero_based=True, query_id=True)
    except (ValueError, OverflowError) as error:
        raise _bad_line(path, error) from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} is damaged or cut off: {error}.") from error
    if len(y) == 0:
        raise UserError(f"the file {path} holds no rows.")
    if len(queries) not in (0, len(y)):
        raise UserError(f"{path} has a query (qid) on {len(queries)} of its {len(y)} rows: give all rows one, or none.")
    if x.nnz == 0:
        raise UserError(f"{path} has no feature in any row: a line is 'label index:value index:value ...'.")
    smallest, largest = int(x.indices.min()), int(x.indices.max())
    first = min(smallest, 1) if first_index is None else first_index
    width = largest - first + 1 if n_features is None else n_features
    if smallest < first or largest - first >= width:
        outside = smallest if smallest < first else largest
        row = int(np.searchsorted(x.indptr, np.argmax(x.indices == outside), side="right"))
        last = first + width - 1
        raise UserError(f"{path}: data row {row} has feature {outside}, but training had features {first} to {last}.")
    matrix = sp.csr_array((x.data, x.indices - first, x.indptr), shape=(len(y), width))
    dense = n_features is None and matrix.nnz >= DENSE * len(y) * width
    return RawArrays(
        train=RawPart(
            x=matrix.toarray() if dense else matrix,
            y=y,
            groups=queries.astype(np.int64) if len(queries) else None,
        ),
        first_index=first,
    )


def _bad_line(path: Path, error: Exception) -> UserError:
    """Find the first line that is not in the format, after scikit-learn has refused the file."""
    with open_plain(path) as lines:
        for number, line in enumerate(lines, start=1):
            problem = line_problem(line.decode("utf-8", errors="replace"))
            if problem:
                return UserError(f"{path}, line {number}: {problem}; a line is 'label [qid:query] index:value ...'.")
    return UserError(f"{path} is not in svmlight format: {error}.")


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
        if not index.isdecimal() or int(index) > LARGEST_INDEX:
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
