"""What the name of a file says: its format, and what to call its data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pinoise.errors import UserError
from pinoise.files import expanded, open_regular

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
MAY_BE_COMPRESSED = ("csv", "svmlight", "idx")

# MNIST's files have no extension: train-images-idx3-ubyte, or .idx3-ubyte as they are sometimes called.
_IDX = re.compile(r".*[-.]idx\d+-ubyte", re.IGNORECASE)


def existing_path(path: str | Path) -> Path:
    """Return the path of a folder, or of a file that is not empty and can be opened; raise a clear error otherwise."""
    path = expanded(path)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"the name {str(path)!r} is not UTF-8, so a run could not note it: rename the file.") from None
    try:
        if path.is_dir():
            return path
        with open_regular(path) as stream:
            size = stream.seek(0, 2)
    except FileNotFoundError as error:
        raise UserError(f"the file {path} does not exist.") from error
    except (OSError, ValueError) as error:  # such as a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"the file {path} cannot be opened: {reason}.") from error
    if size == 0:
        raise UserError(f"the file {path} is empty.")
    return path


def file_format(path: Path) -> FileFormat:
    """Return the format that a file's extension stands for.

    >>> file_format(Path("adult.csv.gz")), file_format(Path("epsilon_normalized.t.bz2"))
    ('csv', 'svmlight')
    >>> file_format(Path("t10k-images-idx3-ubyte.gz"))
    'idx'
    """
    name = uncompressed_name(path)
    if _IDX.fullmatch(name):
        return "idx"
    ending = Path(name).suffix.lower()
    found = EXTENSIONS.get(ending)
    if name != path.name:
        if ending == "":  # LIBSVM publishes its training files as name.bz2
            return "svmlight"
        found = found if found in MAY_BE_COMPRESSED else None
    if found is None:
        raise UserError(
            f"{path} has an unknown extension: allowed are {', '.join(EXTENSIONS)}; text and IDX also with "
            f"{' or '.join(COMPRESSED)}."
        )
    return found


def uncompressed_name(path: Path) -> str:
    """Return the name of a file without the extension of its compression.

    >>> uncompressed_name(Path("adult.csv.gz")), uncompressed_name(Path("adult.csv"))
    ('adult.csv', 'adult.csv')
    """
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def data_name(path: Path) -> str:
    """Return a file's name without its extensions, or a folder's name.

    >>> data_name(Path("adult.csv.gz")), data_name(Path("epsilon.t.bz2"))
    ('adult', 'epsilon.t')
    """
    if path.is_dir():
        return path.resolve().name
    name = Path(uncompressed_name(path))
    return name.name if name.suffix == ".t" else name.stem
