from __future__ import annotations

from pathlib import Path

import pytest

from pinoise.data.source import existing_path, file_format
from pinoise.errors import UserError


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.csv does not exist"):
        existing_path(tmp_path / "nowhere.csv")


def test_a_folder_is_left_to_the_readers(tmp_path: Path) -> None:
    assert existing_path(str(tmp_path)) == tmp_path


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nothing.npy"
    path.touch()
    with pytest.raises(UserError, match=r"nothing\.npy is empty"):
        existing_path(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "csv"),
        ("a.TSV", "csv"),
        ("a.b.csv.gz", "csv"),
        ("a.parquet", "parquet"),
        ("a.npy", "npy"),
        ("a.sparse.npz", "npz"),
        ("a.svm", "svmlight"),
        ("a.libsvm.bz2", "svmlight"),
        ("a.txt.gz", "svmlight"),
        ("epsilon_normalized.gz", "svmlight"),
        ("epsilon_normalized.t.gz", "svmlight"),
        ("train-images-idx3-ubyte", "idx"),
        ("train-images-idx3-ubyte.gz", "idx"),
        ("t10k-labels.idx1-ubyte", "idx"),
        ("mine.idx.bz2", "idx"),
    ],
)
def test_the_extension_tells_the_format(name: str, expected: str) -> None:
    assert file_format(Path(name)) == expected


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.xlsx.gz", "a.npz.gz"])
def test_an_unknown_extension_is_refused_with_the_allowed_ones(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown extension: allowed are \.csv, \.tsv, \.parquet"):
        file_format(Path(name))
