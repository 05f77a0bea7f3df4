"""Embeddings as files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pinoise.errors import UserError

FORMATS = (".npy", ".npz", ".csv", ".parquet")


def check_target(path: Path) -> None:
    """Say at once, before any work, that a file cannot be written."""
    if path.suffix.lower() not in FORMATS:
        found = f"has extension {path.suffix!r}" if path.suffix else "has no extension"
        raise UserError(f"{path} {found}: an embedding is written as {', '.join(FORMATS)}.")
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the file to write.")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UserError(f"{path} cannot be written: the folder {path.parent} is not writable.")


def write_embedding(
    path: Path, embeddings: Mapping[str, np.ndarray], *, names: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write the embedding of each part, in one move: ``.npz`` as X_train, X_test; other formats hold one part.

    The ``names`` of the rows of a part, where they have some, become a column ``file`` before the others, or the arrays
    names_train and names_test; ``.npy`` has no place for them.
    """
    check_target(path)
    suffix = path.suffix.lower()
    partial = path.with_name(f".{path.stem}.partial{suffix}")
    try:
        if suffix == ".npz":
            arrays = {f"X_{part}": z for part, z in embeddings.items()}
            arrays |= {f"names_{part}": np.array(rows, dtype=np.str_) for part, rows in (names or {}).items()}
            np.savez(partial, allow_pickle=False, **arrays)
        else:
            ((part, z),) = embeddings.items()
            if suffix == ".npy":
                np.save(partial, z)
            else:
                _write_columns(partial, z, (names or {}).get(part))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _write_columns(path: Path, z: np.ndarray, names: Sequence[str] | None) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    files = {} if names is None else {"file": pa.array(names, pa.string())}
    table = pa.table({**files, **{f"pinda{i}": z[:, i] for i in range(z.shape[1])}})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
