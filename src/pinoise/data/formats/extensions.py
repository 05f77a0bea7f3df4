"""Which file is it, and in which format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pinoise.errors import UserError

FileFormat = Literal["csv", "parquet", "npy", "npz", "svmlight", "idx"]

EXTENSIONS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".npy": "npy",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
    ".t": "svmlight",  # LIBSVM's name for a test file
    ".idx": "idx",
}
COMPRESSED = (".gz", ".bz2")

# MNIST's files have no extension: train-images-idx3-ubyte, or .idx3-ubyte as they are sometimes called.
_IDX = re.compile(r".*[-.]idx\d+-ubyte", re.IGNORECASE)


def existing_path(path: str | Path) -> Path:
    """Return the path of a folder, or of a file that is not empty; raise a clear error otherwise."""
    path = Path(path).expanduser()
    try:
        if not path.exists():
            raise UserError(f"the file {path} does not exist.")
        if not path.is_dir() and path.stat().st_size == 0:
            raise UserError(f"the file {path} is empty.")
    except OSError as error:
        raise UserError(f"the file {path} cannot be opened: {error.strerror}.") from error
    return path


def file_format(path: Path) -> FileFormat:
    """Return the format that a file's extension stands for.

    >>> file_format(Path("adult.csv.gz")), file_format(Path("epsilon_normalized.t.bz2"))
    ('csv', 'svmlight')
    >>> file_format(Path("t10k-images-idx3-ubyte.gz"))
    'idx'
    """
    if _IDX.fullmatch(path.stem if path.suffix.lower() in COMPRESSED else path.name):
        return "idx"
    ending = path.suffix.lower()
    if ending in COMPRESSED:
        inner = Path(path.stem).suffix.lower()
        found = EXTENSIONS.get(inner)
        if found in ("csv", "svmlight", "idx"):
            return found
        if inner == "":  # LIBSVM publishes its training files as name.bz2
            return "svmlight"
    elif ending in EXTENSIONS:
        return EXTENSIONS[ending]
    raise UserError(f"{path} has an unknown extension: allowed are {allowed_extensions()}.")


def allowed_extensions() -> str:
    """Return the readable extensions as one phrase."""
    return f"{', '.join(EXTENSIONS)}; text and IDX also with {' or '.join(COMPRESSED)}"
