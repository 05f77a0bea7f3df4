from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinoise.data.formats.parquet import read_parquet
from pinoise.data.formats.tables import read_csv
from pinoise.errors import UserError


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_types_are_recognised_and_every_word_for_missing_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "n,f,b,t\n1,0.5,true,x\nNA,nan,,N/A\nnull,,False, NaN \n2,1e3,TRUE, y\n")
    table = read_csv(path).table
    assert table.to_pydict() == {
        "n": [1, None, None, 2],
        "f": [0.5, None, None, 1000.0],
        "b": [True, None, False, True],
        "t": ["x", None, None, "y"],
    }


def test_columns_named_as_text_keep_their_leading_zeros(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "zip,n\n01,1\n1,2\n")
    assert read_csv(path, text=["zip"]).table.column("zip").to_pylist() == ["01", "1"]


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz", "csv.bz2"])
def test_compressed_text_is_read(tmp_path: Path, ending: str) -> None:
    text = b"a,b\n1,2\n3,4\n"
    text = text.replace(b",", b"\t") if ending.startswith("tsv") else text
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else bz2.compress(text))
    assert read_csv(path).table.to_pydict() == {"a": [1, 3], "b": [2, 4]}


def test_header_names_are_trimmed_unquoted_and_completed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", '\ufeff\n , b ,"c, d","e\nf"\n0,1,2,3\n1,1,2,3\n')
    table = read_csv(path).table
    assert table.column_names == ["Unnamed: 0", "b", "c, d", "e\nf"]
    assert table.num_rows == 2


def test_semicolons_are_taken_as_separator_with_a_note(tmp_path: Path) -> None:
    file = read_csv(written(tmp_path / "wine.csv", '"acid";"ph"\n1.5;3\n2.5;4\n'))
    assert file.table.to_pydict() == {"acid": [1.5, 2.5], "ph": [3, 4]}
    assert file.notes == ("read with ';' as the separator",)


def test_a_file_without_header_loses_no_row(tmp_path: Path) -> None:
    file = read_csv(written(tmp_path / "iris.csv", "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n"))
    assert file.table.num_rows == 2
    assert file.table.column_names == [f"column_{i}" for i in range(5)]
    assert "no header" in file.notes[0]


@pytest.mark.parametrize("header", ["label,0,1,2", "0,1,2,3", "country,1990,1995,2000"])
def test_a_header_of_column_numbers_is_a_header(tmp_path: Path, header: str) -> None:
    file = read_csv(written(tmp_path / "a.csv", header + "\n1,2,3,4\n"))
    assert file.table.column_names == header.split(",")
    assert file.table.num_rows == 1
    assert file.notes == (f"took the numbers of the first line for column names: {header.replace(',', ', ')}",)


def test_quoted_cells_may_hold_separators_and_line_breaks(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path / "a.csv", 'a,b\n"x, y",1\n"line\nbreak",2\n')).table
    assert table.column("a").to_pylist() == ["x, y", "line\nbreak"]


@pytest.mark.parametrize("header", ["a,b\n", "\n\na,b\n", "a,b\n\n", ""])
def test_a_row_of_another_length_is_named(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "ragged.csv", header + "2,1\n3,4,5\n6,7\n")
    with pytest.raises(UserError, match=r"ragged\.csv: data row 2 has 3 cells where the first line has 2"):
        read_csv(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "has a header but no rows"),
        ("\n\n", "is empty"),
        ('a,"b\n1,2\n', "never closed"),
    ],
)
def test_text_that_is_no_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_csv(written(tmp_path / "a.csv", text))


def test_a_column_that_is_read_as_text_may_be_in_latin_1_too(tmp_path: Path) -> None:
    text = "a,town\n" + 5000 * "1,Rom\n" + "2,Zürich\n"  # so late that the header does not tell
    raw = read_csv(written(tmp_path / "a.csv", text, encoding="latin-1"), text=["town"])
    assert raw.table.column("town").to_pylist() == [*["Rom"] * 5000, "Zürich"]
    assert raw.notes == ("read as Latin-1 (Windows-1252), because it is not UTF-8",)


def test_a_header_in_another_encoding_is_read_if_it_is_latin_1(tmp_path: Path) -> None:
    raw = read_csv(written(tmp_path / "a.csv", "größe,b\n1,2\n", encoding="latin-1"))
    assert raw.table.column_names == ["größe", "b"]
    with pytest.raises(UserError, match="save it in UTF-8"):
        read_csv(written(tmp_path / "b.csv", "größe,b\n1,2\n", encoding="utf-16"))


@pytest.mark.parametrize("keep", [10, -9])
def test_compressed_text_that_was_cut_off_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 9999)[:keep])
    with pytest.raises(UserError, match=r"a\.csv\.gz is damaged"):
        read_csv(path)


def test_compression_is_recognised_by_content_and_not_by_name(tmp_path: Path) -> None:
    plain, packed = written(tmp_path / "a.csv.gz", "a,b\n1,2\n"), tmp_path / "b.csv"
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    for path in (plain, packed):
        assert read_csv(path).table.to_pydict() == {"a": [1], "b": [2]}


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, None], pa.int8()), "c": pa.array(["x", "y"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet").table.equals(table)


def test_a_cut_off_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"a\.parquet is damaged"):
        read_parquet(path)


def test_a_parquet_file_without_rows_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.int8())}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="has no rows"):
        read_parquet(tmp_path / "a.parquet")
