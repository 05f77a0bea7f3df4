"""Text files as streams: every row is read or the file is refused, whatever its quotes, line ends and encoding."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.commands import ended, start

from pinoise.data import ReadOptions, read_file
from pinoise.data.table import batches
from pinoise.data.table.batches import Table, csv_table
from pinoise.errors import UserError


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def whole(table: Table) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pa.concat_tables([batch for _, batch in table.batches(table.names)]).to_pydict()
    return found


def rows_of(path: Path) -> int:
    return len(next(iter(whole(csv_table(path)).values())))


def counted_by_python(text: str) -> int:
    return sum(1 for row in csv.reader(io.StringIO(text, newline="")) if row) - 1


ROWS = [f"{number},word{number % 7},{number / 7:.3f}" for number in range(200)]
HEAD = "n,word,x\n"


@pytest.mark.parametrize("row", [0, 99, 199])
@pytest.mark.parametrize("cell", [0, 1, 2])
@pytest.mark.parametrize("block", [1 << 12, 1 << 20])
def test_a_quotation_mark_left_open_is_refused_with_its_row(
    row: int, cell: int, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BLOCK_BYTES", block)
    cells = ROWS[row].split(",")
    cells[cell] = f'"{cells[cell]}'
    lines = [*ROWS[:row], ",".join(cells), *ROWS[row + 1 :]]
    path = written(tmp_path / "open.csv", HEAD + "\n".join(lines) + "\n")
    with pytest.raises(
        UserError, match=r"open\.csv.* a quotation mark in (it|data row \d+)( is)? never closed"
    ) as told:
        read_file(path)
    if block > 1 << 12:  # otherwise the row does not fit into a block, and is not numbered
        assert f"data row {row + 1} is never closed" in str(told.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_line_ends_and_a_byte_order_mark_lose_no_row(end: str, start: str, last: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = start + (HEAD + "\n".join(ROWS) + last).replace("\n", end)
    path.write_bytes(text.encode())
    assert rows_of(path) == counted_by_python(text) == 200


def test_mixed_line_ends_and_quoted_line_breaks_lose_no_row(tmp_path: Path) -> None:
    text = 'n,word\n1,a\r\n2,"b\nb"\r3,"c\r\nc"\n4,d\n5,"e,""e"""\n6,5" pipe\n\n7,g'
    path = written(tmp_path / "a.csv", text)
    assert rows_of(path) == counted_by_python(text) == 7
    assert whole(csv_table(path))["word"] == ["a", "b\nb", "c\r\nc", "d", 'e,"e"', '5" pipe', "g"]


@pytest.mark.parametrize("place", [0, 5, 60, 2000, -1])
def test_a_nul_anywhere_is_refused(place: int, tmp_path: Path) -> None:
    content = bytearray((HEAD + "\n".join(ROWS)).encode())
    content[place] = 0
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.csv is not text in UTF-8"):
        csv_table(tmp_path / "a.csv")


cell = st.text(alphabet=st.sampled_from('ab,"\n\r;x 1'), max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=8))
def test_what_python_writes_is_read_row_by_row(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([("one", "two"), *rows])
    found = whole(csv_table(path))
    expected = [[text.strip() or None for text in column] for column in zip(*rows, strict=True)]
    assert [found["one"], found["two"]] == expected


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from('ab,"\n1'), min_size=1, max_size=40))
def test_any_text_is_read_with_the_rows_that_python_counts_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    text = "one,two\n" + text
    path = written(tmp_path_factory.mktemp("csv") / "a.csv", text)
    try:
        found = rows_of(path)
    except UserError:
        return
    assert found == counted_by_python(text)


@pytest.mark.slow
@pytest.mark.processes
def test_a_file_that_is_refused_while_arrow_reads_ahead_does_not_abort_the_process(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "a,b,c,class\n1,2\n" + "0.12345,17,0.7654321,x\n" * 6_000_000)
    for _ in range(3):  # blocks of 32 MB, of which a thread of Arrow's reads the next ones
        assert (
            "data row 1 has 2 cells" in ended(start("train", "--data", path, "--out", "run", where=tmp_path)).sentence
        )


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz", "csv.bz2"])
def test_compressed_text_is_read(tmp_path: Path, ending: str) -> None:
    text = b"a,b\n1,2\n3,4\n"
    text = text.replace(b",", b"\t") if ending.startswith("tsv") else text
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else bz2.compress(text))
    assert whole(csv_table(path)) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_header_names_are_trimmed_unquoted_and_completed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", '\ufeff\n , b ,"c, d","e\nf"\n0,1,2,3\n1,1,2,3\n')
    table = csv_table(path)
    assert table.names == ("Unnamed: 0", "b", "c, d", "e\nf")
    assert rows_of(path) == 2


def test_semicolons_are_taken_as_separator_with_a_note(tmp_path: Path) -> None:
    table = csv_table(written(tmp_path / "wine.csv", '"acid";"ph"\n1.5;3\n2.5;4\n'))
    assert whole(table) == {"acid": ["1.5", "2.5"], "ph": ["3", "4"]}
    assert table.notes == ("read with ';' as the separator",)


def test_a_file_without_header_loses_no_row(tmp_path: Path) -> None:
    table = csv_table(written(tmp_path / "iris.csv", "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n"))
    assert len(whole(table)["column_4"]) == 2
    assert table.names == tuple(f"column_{i}" for i in range(5))
    assert "no header" in table.notes[0]


@pytest.mark.parametrize("header", ["label,0,1,2", "0,1,2,3", "country,1990,1995,2000"])
def test_a_header_of_column_numbers_is_a_header(tmp_path: Path, header: str) -> None:
    table = csv_table(written(tmp_path / "a.csv", header + "\n1,2,3,4\n"))
    assert table.names == tuple(header.split(","))
    assert table.notes == (f"took the numbers of the first line for column names: {header.replace(',', ', ')}",)


@pytest.mark.parametrize("header", ["a,b\n", "\n\na,b\n", "a,b\n\n", ""])
def test_a_row_of_another_length_is_named(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "ragged.csv", header + "2,1\n3,4,5\n6,7\n")
    with pytest.raises(UserError, match=r"ragged\.csv: data row 2 has 3 cells where the first line has 2"):
        whole(csv_table(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "has a header but no rows"),
        ("a,b\n\n\n", "has a header but no rows"),
        ("\n\n", "is empty"),
        ('a,"b\n1,2\n', "never closed"),
        ("a,a\n1,2\n", "more than one column called 'a': rename them"),
    ],
)
def test_text_that_is_no_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        whole(csv_table(written(tmp_path / "a.csv", text)))


def test_one_byte_of_latin_1_late_in_a_file_makes_all_of_it_latin_1(tmp_path: Path) -> None:
    text = "a,town\n" + 5000 * "1,Rom\n" + "2,Zürich\n"
    table = csv_table(written(tmp_path / "a.csv", text, encoding="latin-1"))
    assert whole(table)["town"] == [*["Rom"] * 5000, "Zürich"]
    assert table.notes == ("read as Latin-1 (Windows-1252), because it is not UTF-8",)
    assert csv_table(written(tmp_path / "c.csv", "größe,b\n1,2\n", encoding="latin-1")).names == ("größe", "b")
    with pytest.raises(UserError, match="save it in UTF-8"):
        csv_table(written(tmp_path / "b.csv", "größe,b\n1,2\n", encoding="utf-16"))


def test_the_words_for_a_missing_cell_are_missing_with_spaces_around_them(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "n,t\n1,x\nNA, NaN \nnull,N/A\n, y\n-,?\n")
    table = csv_table(path)
    assert whole(table) == {"n": ["1", None, None, None, "-"], "t": ["x", None, None, "y", "?"]}
    assert whole(replace(table, na=("-", "?")))["n"] == ["1", None, None, None, None]


@pytest.mark.parametrize(
    "name",
    [
        *("australian", "car", "crx", "fars", "flare", "german", "hypothyroid", "kr_vs_k", "nursery", "page_blocks"),
        *("saheart", "satimage", "segment", "splice", "vowel", "yeast"),
    ],
)
def test_the_real_tables_need_no_option_but_the_label(real_data: Path, name: str) -> None:
    path = real_data / "tables" / f"{name}.csv"
    data, _ = read_file(path, ReadOptions(label=0 if name == "hypothyroid" else -1))
    assert len(data.train) == counted_by_python(path.read_text(encoding="utf-8"))
    assert data.n_classes >= 2
