"""From rows to an embedding and its file, and what is checked before a classifier is fitted on embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from pinoise.data.dataset import Array
from pinoise.data.rows import Rows
from pinoise.errors import UserError
from pinoise.evaluation.workers import mapped
from pinoise.files import check_new_file, written_file
from pinoise.modes import own_modes

TABLES = (".csv", ".parquet")
FORMATS = (".npy", ".npz", *TABLES)
WHOLE = "all"
"""The one part of data that is not split into training and test rows."""

_BATCH_VALUES = 1 << 24  # values in one batch, so that wide samples do not fill the memory


@own_modes()
def embed(
    encode: Callable[[torch.Tensor], torch.Tensor],
    rows: Rows,
    only: range | None = None,
    *,
    batch_size: int = 4096,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    processes: int = 1,
) -> Array:
    """Return the embedding (n, o) of every row, or ``only`` of some rows that follow one another, in order.

    Batches reach ``encode`` on ``device`` in ``dtype``; the result is float64 if ``dtype`` is, and float32 otherwise.
    A batch has fewer than ``batch_size`` rows if it would otherwise hold more than 2²⁴ values.
    A module passed as ``encode`` must already be in evaluation mode. Each of several processes embeds a share.

    >>> embed(lambda x: 2 * x, torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), batch_size=2)
    array([[ 2.,  4.],
           [ 6.,  8.],
           [10., 12.]], dtype=float32)
    """
    chosen = range(len(rows)) if only is None else only
    if not chosen:
        raise UserError("there are no rows to embed: give at least one.")
    if processes > 1:
        count = min(processes, len(chosen))
        shares = [chosen[len(chosen) * i // count : len(chosen) * (i + 1) // count] for i in range(count)]
        share = partial(embed, encode, rows, batch_size=batch_size, device=device, dtype=dtype)
        return np.concatenate(list(mapped(share, shares, processes=processes)))
    kept = torch.float64 if dtype == torch.float64 else torch.float32
    width = max(1, rows[torch.arange(1)].numel())
    batch_size = min(batch_size, max(1, _BATCH_VALUES // width))
    result = torch.empty(0)
    with torch.no_grad():
        for start in range(0, len(chosen), batch_size):
            stop = min(start + batch_size, len(chosen))
            z = encode(rows[torch.arange(chosen[start], chosen[stop - 1] + 1)].to(device=device, dtype=dtype))
            if z.ndim != 2 or len(z) != stop - start:
                what = f"the shape {tuple(z.shape)} for {stop - start} rows"
                raise UserError(f"the encoder returned {what}: an embedding must have the shape (rows, features).")
            if start == 0:
                result = torch.empty((len(chosen), z.shape[1]), dtype=kept)
            result[start:stop] = z
    embedded = result.numpy()
    _check_finite_rows(embedded, "the output", first=chosen.start)
    return embedded


def table_of(z: Array, columns: Sequence[str], kept: Any = None) -> Any:
    """Return an embedding as an Arrow table, after the columns that are ``kept`` beside it."""
    import pyarrow as pa

    kept = pa.table({}) if kept is None else kept
    return pa.table([*kept.columns, *z.T], names=[*kept.column_names, *columns])


def write_embedding(
    path: Path,
    embeddings: Mapping[str, Array],
    *,
    columns: Sequence[str],
    beside: Mapping[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write the embedding of each part, complete or not at all; only ``.npz`` holds several, as X_train and X_test.

    Args:
        path: the file; its extension is the format.
        embeddings: of each part, by name. Data without parts has the part ``WHOLE``, which is ``X`` in ``.npz``.
        columns: the names of the embedding's columns in a table.
        beside: of a part, the columns that come before its embedding in a table, as an Arrow table. Of these ``.npz``
            has ``file``, as names_train and names_test, and ``.npy`` none.
        force: whether a file that exists is replaced.
    """
    check_new_file(path, extensions=FORMATS, what="an embedding", force=force)
    suffix, beside = path.suffix.lower(), beside or {}
    with written_file(path) as file:
        if suffix == ".npz":
            arrays = {f"X_{part}": z for part, z in embeddings.items()}
            named = {part: kept["file"] for part, kept in beside.items() if "file" in kept.column_names}
            arrays |= {f"names_{part}": np.array(names.to_pylist(), dtype=np.str_) for part, names in named.items()}
            arrays = {name.removesuffix(f"_{WHOLE}"): values for name, values in arrays.items()}
            np.savez(file, allow_pickle=False, **arrays)
            return
        ((part, z),) = embeddings.items()
        if suffix == ".npy":
            # NumPy writes to a file by itself and then does not say why it failed.
            stream: Any = SimpleNamespace(write=file.write)
            np.save(stream, z)
            return
        from pyarrow import csv, parquet

        write = csv.write_csv if suffix == ".csv" else parquet.write_table
        write(table_of(z, columns, beside.get(part)), file)


def check_embeddings(train: Array, test: Array, *labels: Array, what: str = "labels") -> None:
    """Raise a ``UserError`` unless both embeddings are finite, not empty and equally wide, with a label for each row.

    >>> import numpy as np
    >>> check_embeddings(np.eye(2), np.eye(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pinoise.errors.UserError: the training embedding has 2 features but the test embedding has 3: embed both...
    """
    for name, z in (("training", train), ("test", test)):
        if z.ndim != 2 or 0 in z.shape:
            raise UserError(f"the {name} embedding has the shape {z.shape}, but must be (rows, features), above 0.")
        _check_finite_rows(z, f"the {name} embedding")
    if train.shape[1] != test.shape[1]:
        widths = f"{train.shape[1]} features but the test embedding has {test.shape[1]}"
        raise UserError(f"the training embedding has {widths}: embed both with one encoder.")
    for name, z, y in zip(("training", "test"), (train, test), labels, strict=False):
        if y.shape != (len(z),):
            raise UserError(f"the {name} {what} have the shape {y.shape}, but must be one per row: ({len(z)},).")


def _check_finite_rows(z: Array, what: str, *, first: int = 0) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(z.sum()):  # one fast pass; a sum of finite numbers may still be infinite
            return
    finite = np.isfinite(z).all(axis=1)
    if not finite.all():
        where = f"row {first + int(finite.argmin())} of {what} is not finite ({int((~finite).sum())} such rows in all)"
        raise UserError(f"{where}: look for very large numbers in the data, a diverged training or damaged weights.")


def check_labelled(train: Array, y_train: Array, test: Array, y_test: Array) -> None:
    """Raise a ``UserError`` unless a classifier can be fitted on ``train`` and scored on ``test``.

    A class of ``test`` that ``train`` lacks is allowed: nothing can predict it, so its rows count as wrong.

    >>> import numpy as np
    >>> check_labelled(np.eye(2), np.array([4, 4]), np.eye(2), np.array([4, 5]))
    Traceback (most recent call last):
    pinoise.errors.UserError: every training row has the label 4: a score needs at least two classes.
    """
    check_embeddings(train, test, y_train, y_test)
    if (y_train == y_train[0]).all():
        raise UserError(f"every training row has the label {y_train[0]}: a score needs at least two classes.")
