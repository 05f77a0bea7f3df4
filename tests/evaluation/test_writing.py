from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from pinoise.evaluation.writing import write_embedding

Z = np.arange(6, dtype=np.float32).reshape(3, 2)
NAMES = ("cat/a.png", "dog/b, c.png", "dog/ü.png")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_a_table_are_named_in_its_first_column(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"z.{ending}"
    write_embedding(path, {"test": Z}, names={"test": NAMES})
    table = pyarrow.csv.read_csv(path) if ending == "csv" else pyarrow.parquet.read_table(path)
    assert table.column_names == ["file", "pinda0", "pinda1"]
    assert tuple(table.column("file").to_pylist()) == NAMES
    np.testing.assert_array_equal(table.column("pinda1"), Z[:, 1])
    write_embedding(path, {"test": Z})
    table = pyarrow.csv.read_csv(path) if ending == "csv" else pyarrow.parquet.read_table(path)
    assert table.column_names == ["pinda0", "pinda1"]


def test_an_archive_has_an_array_of_names_for_each_part(tmp_path: Path) -> None:
    path = tmp_path / "z.npz"
    write_embedding(path, {"train": Z, "test": Z[:1]}, names={"train": NAMES, "test": NAMES[:1]})
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive) == ["X_test", "X_train", "names_test", "names_train"]
        assert tuple(archive["names_train"]) == NAMES
        assert tuple(archive["names_test"]) == NAMES[:1]
        np.testing.assert_array_equal(archive["X_train"], Z)
    write_embedding(path, {"train": Z})
    with np.load(path) as archive:
        assert list(archive) == ["X_train"]


def test_a_bare_array_has_no_place_for_names(tmp_path: Path) -> None:
    write_embedding(tmp_path / "z.npy", {"train": Z}, names={"train": NAMES})
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), Z)
