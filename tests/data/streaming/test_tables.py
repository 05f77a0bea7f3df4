"""Tables in pieces: the same columns, categories, fill values, labels and notes as in memory."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from pinoise.data import Dataset, LaterOptions, ReadOptions, fingerprint_parts, from_arrays, open_source, read_file
from pinoise.data.encoding import tallies
from pinoise.data.encoding.learning import learn_table
from pinoise.data.formats import csv_pieces, parquet, tables
from pinoise.data.lazy import LazyArray
from pinoise.data.preparation import TablePreparation
from pinoise.data.streaming import rule
from pinoise.data.streaming import tables as streamed
from pinoise.data.streaming.records import Fitting
from pinoise.errors import UserError

ROWS = 2000


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small tables come in many pieces."""
    monkeypatch.setattr(parquet, "LEAST_ROWS", 300)
    monkeypatch.setattr(parquet, "PIECE_VALUES", 1)
    monkeypatch.setattr(streamed, "_PIECE_VALUES", 20_000)
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(tallies, "MOST_VALUES", 700)


def mixed_table(rows: int = ROWS, *, seed: int = 0) -> Any:
    """Every kind of column, with gaps."""
    random = np.random.default_rng(seed)

    def gaps(values: list[Any], share: float = 0.1) -> list[Any]:
        return [None if gone else value for value, gone in zip(values, random.random(rows) < share, strict=True)]

    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "Unnamed: 0": np.arange(rows),
            "normal": pa.array(gaps(random.normal(1e3, 1, rows).tolist()), pa.float64()),
            "count": pa.array(gaps(random.poisson(3, rows).tolist()), pa.int16()),
            "half": pa.array(random.integers(0, 9, rows) / 2, pa.float32()),
            "seconds": random.integers(1_600_000_000, 1_600_100_000, rows),
            "customer_id": random.permutation(rows) * 7,
            "town": gaps(random.choice(["Rome", "Oslo", "Bern"], rows).tolist()),
            "street": [f"street {number}" for number in random.zipf(1.3, rows) % 900],
            "key": [f"k{number}" for number in random.permutation(rows)],
            "remark": [f"it came {number} days too late" for number in random.permutation(rows)],
            "price": gaps([f"${value:,.2f}" for value in random.lognormal(7, 1, rows)]),
            "written": gaps([f"{value:.3f}" for value in random.normal(size=rows)]),
            "day": pa.array(
                gaps([day + datetime.timedelta(int(n)) for n in random.integers(0, 900, rows)]), pa.date32()
            ),
            "when": [f"{n % 28 + 1:02d}.{n % 12 + 1:02d}.2021" for n in random.integers(0, 400, rows)],
            "truth": pa.array(gaps((random.random(rows) < 0.3).tolist()), pa.bool_()),
            "empty": pa.nulls(rows),
            "constant": np.full(rows, 5),
            "class": random.choice(["a", "b", "c"], rows),
        }
    )


def written(table: Any, path: Path) -> Path:
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path, row_group_size=700)
    return path


def both(path: Path, **options: Any) -> tuple[Dataset, TablePreparation, Dataset, TablePreparation]:
    held, known = read_file(path, ReadOptions(**options, stream="never"))
    rows, learned = read_file(path, ReadOptions(**options, stream="always"))
    assert isinstance(known, TablePreparation)
    assert isinstance(learned, TablePreparation)
    return held, known, rows, learned


def assert_same(held: Dataset, rows: Dataset) -> None:
    assert isinstance(rows.train.x, LazyArray)
    assert (held.feature_names, held.class_names, held.spans) == (rows.feature_names, rows.class_names, rows.spans)
    assert held.notes == rows.notes[:-1]
    assert rows.notes[-1].startswith("read in pieces")
    np.testing.assert_array_equal(held.train.y, rows.train.y)
    x = np.asarray(held.train.x)
    # Single precision costs at most a millionth of a feature's range.
    np.testing.assert_array_less(np.abs(rows.train.x[:] - x).max(axis=0), 1e-6 * np.ptp(x, axis=0) + 1e-300)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("missing", ["median", "mean", "zero"])
def test_a_table_in_pieces_is_read_as_in_memory(suffix: str, missing: str, tmp_path: Path) -> None:
    path = written(mixed_table(), tmp_path / f"mixed{suffix}")
    held, known, rows, learned = both(
        path, label="class", missing=missing, categorical=("constant",), text=("remark",), max_categories=20
    )
    assert learned == known
    assert_same(held, rows)
    assert any("customer_id" in note for note in held.notes)
    assert any("'key'" in note for note in held.notes)


def test_a_measurement_is_a_label_too(tmp_path: Path) -> None:
    path = written(mixed_table(), tmp_path / "mixed.parquet")
    held, known, rows, learned = both(path, label="seconds")
    assert known.labels is not None
    assert known.labels.measured
    assert learned == known
    assert_same(held, rows)


def test_later_tables_are_read_as_in_memory(tmp_path: Path) -> None:
    path = written(mixed_table(), tmp_path / "mixed.parquet")
    _, preparation = read_file(path, ReadOptions(label="class", stream="never"))
    later = mixed_table(700, seed=1).append_column("new", pa.array(np.arange(700)))
    towns = pa.array(
        [None if town is None else town.replace("Bern", "Lima") for town in later.column("town").to_pylist()]
    )
    later = later.set_column(later.column_names.index("town"), "town", towns)
    other = written(later, tmp_path / "later.csv")
    assert_same(
        preparation.read(other, LaterOptions(stream="never")), preparation.read(other, LaterOptions(stream="always"))
    )


def test_a_folder_of_files_is_one_table(tmp_path: Path) -> None:
    whole = mixed_table()
    for part, name in ((0, "town=Rome/b"), (1, "town=Rome/a"), (2, "town=Oslo/a")):
        file = tmp_path / "parts" / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        written(whole.drop_columns(["town"]).slice(part * 600, 600), file)
    (tmp_path / "parts" / "_SUCCESS").touch()
    held, known, rows, learned = both(tmp_path / "parts", label="class")
    assert learned == known
    assert_same(held, rows)
    order = [2, 1, 0]  # by name
    single = written(
        pa.concat_tables(
            [
                whole.drop_columns(["town"])
                .slice(part * 600, 600)
                .append_column("town", pa.array([["Rome", "Rome", "Oslo"][part]] * 600))
                for part in order
            ]
        ),
        tmp_path / "single.parquet",
    )
    np.testing.assert_array_equal(read_file(single, ReadOptions(label="class"))[0].train.x, held.train.x)


def test_files_of_a_folder_must_have_the_same_columns(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"a": [1, 2], "b": [1.0, 2.0]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"a": [1, 2], "c": [1.0, 2.0]}), tmp_path / "2.parquet")
    for stream in ("always", "never"):
        with pytest.raises(UserError, match=r"2\.parquet has other columns than .*1\.parquet: it lacks b and has c"):
            read_file(tmp_path, ReadOptions(stream=stream))
    pyarrow.parquet.write_table(pa.table({"a": ["x", "y"], "b": [1.0, 2.0]}), tmp_path / "2.parquet")
    with pytest.raises(UserError, match=r"2\.parquet: column 'a' is of type string, but in .* of type int64"):
        read_file(tmp_path)


def test_a_column_that_turns_to_text_late_is_named_with_its_row(tmp_path: Path) -> None:
    lines = ["a,b", *(f"{number},{number / 7}" for number in range(ROWS)), "3,oops"]
    path = tmp_path / "late.csv"
    path.write_text("\n".join(lines))
    for stream in ("never", "always"):
        with pytest.raises(UserError, match=f"column 'b' holds numbers, but data row {ROWS + 1} holds 'oops'"):
            read_file(path, ReadOptions(stream=stream))
    assert not list((tmp_path / "cache").rglob("*.rows"))
    assert not list((tmp_path / "cache").rglob("*.part*"))


@pytest.mark.parametrize("cell", ["inf", "1e300"])
def test_a_late_number_that_cannot_be_used_is_named_with_its_row(cell: str, tmp_path: Path) -> None:
    values = np.arange(ROWS, dtype=np.float64)
    values[-5] = float(cell)
    path = written(pa.table({"a": values, "b": np.arange(ROWS) % 7}), tmp_path / "late.parquet")
    for stream in ("never", "always"):
        with pytest.raises(UserError, match=f"column 'a', data row {ROWS - 4} "):
            read_file(path, ReadOptions(stream=stream))


def test_a_late_missing_label_is_named_with_its_row(tmp_path: Path) -> None:
    labels = ["a", "b"] * (ROWS // 2)
    labels[1500:1510] = [None] * 10  # type: ignore[list-item]
    path = written(pa.table({"a": np.arange(ROWS) % 7, "y": labels}), tmp_path / "late.parquet")
    for stream in ("never", "always"):
        with pytest.raises(UserError, match=r"the label of data row 1501 is missing \(10 missing in all\)"):
            read_file(path, ReadOptions(label="y", stream=stream))


def test_the_rule_is_the_size_in_double_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(pa.table({"a": np.arange(100) % 7, "b": np.arange(100) % 5}), tmp_path / "a.parquet")
    assert isinstance(read_file(path)[0].train.x, np.ndarray)
    monkeypatch.setattr(rule, "STREAM_BYTES", 100 * 2 * 8 - 1)
    assert isinstance(read_file(path)[0].train.x, LazyArray)


def test_rows_are_converted_once_and_again_when_the_source_or_the_cache_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = written(mixed_table(), tmp_path / "mixed.parquet"), tmp_path / "here"
    options = ReadOptions(label="class", stream="always", cache=cache)
    first = read_file(path, options)[0]
    learned: list[object] = []

    def counting(*args: Any, **more: Any) -> Any:
        learned.append(args)
        return learn_table(*args, **more)

    monkeypatch.setattr(streamed, "learn_table", counting)
    again = read_file(path, options)[0]
    assert not learned
    known = fingerprint_parts(first)
    assert fingerprint_parts(again) == known
    assert again.notes == first.notes
    (rows,) = cache.glob("*.rows")
    sound = first.train.x[:]
    content = bytearray(rows.read_bytes())
    content[1234] ^= 1
    rows.write_bytes(content)
    np.testing.assert_array_equal(read_file(path, options)[0].train.x[:], sound)
    assert len(learned) == 1
    written(mixed_table(seed=2), path)
    assert fingerprint_parts(read_file(path, options)[0]) != known
    assert len(learned) == 2
    assert sorted(file.suffix for file in cache.iterdir()) == [".json", ".labels", ".lock", ".rows"]


def test_a_file_that_changes_between_passes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(mixed_table(), tmp_path / "mixed.parquet")
    other = written(mixed_table(ROWS + 1, seed=3), tmp_path / "other.parquet")

    def learn_and_change(*args: Any, **more: Any) -> Any:
        found = learn_table(*args, **more)
        shutil.copy(other, path)
        return found

    monkeypatch.setattr(streamed, "learn_table", learn_and_change)
    with pytest.raises(UserError, match=r"mixed\.parquet has changed while it was used"):
        read_file(path, ReadOptions(label="class", stream="always"))
    assert not list((tmp_path / "cache").rglob("*.rows"))


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    path, cache = written(mixed_table(), tmp_path / "mixed.parquet"), tmp_path / "here"
    options = ReadOptions(label="class", stream="always", cache=cache)
    read_file(path, options)
    (rows,) = cache.glob("*.rows")
    (cache / f".{rows.stem}.0123456789abcdef.part.rows").write_bytes(b"half")
    (cache / f".{rows.stem}.scratch.0123456789abcdef.part").write_bytes(b"half")
    rows.unlink()
    read_file(path, options)
    assert not list(cache.glob(".*"))


def test_a_disk_without_room_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = written(mixed_table(), tmp_path / "mixed.parquet"), tmp_path / "here"
    options = ReadOptions(label="class", stream="always", cache=cache)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(UserError, match=r"GB free, but the rows of .* choose another folder .* data\.cache=FOLDER"):
        read_file(path, options)
    assert [file.suffix for file in cache.iterdir()] == [".lock"]


def test_a_source_that_has_no_pieces_refuses_to_be_read_in_pieces() -> None:
    with pytest.raises(UserError, match="cannot be read in pieces, so stream='always' cannot apply"):
        open_source("digits", ReadOptions(stream="always"))


def test_a_table_in_memory_is_never_taken_for_files_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(mixed_table(), tmp_path / "mixed.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rule, "STREAM_BYTES", 0)
    data, _ = from_arrays(pa.table({"a": np.arange(9.0) % 4, "b": np.arange(9) % 2}))
    assert data.train.x.shape == (9, 2)
    assert isinstance(data.train.x, np.ndarray)


def test_types_of_a_csv_file_are_those_of_all_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "types.csv"
    cells = ["1,0,2020-01-01,,7"] * 2000 + ["0.5,true,2020-01-02 10:00:00,x,"]
    path.write_text("\n".join(["a,b,c,d,e", *cells]))
    found = csv_pieces.open_csv(path)
    whole = tables.read_csv(path).table
    pieces = [piece for _, piece in found.pieces(found.names)]
    assert len(pieces) > 1
    assert pa.concat_tables(pieces).combine_chunks().equals(whole.combine_chunks())


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("stream", ["never", "always"])
def test_two_columns_of_one_name_are_refused(suffix: str, stream: Any, tmp_path: Path) -> None:
    path = written(pa.table([np.arange(ROWS), np.arange(ROWS)], names=["a", "a"]), tmp_path / f"twice{suffix}")
    with pytest.raises(UserError, match=rf"twice\{suffix} has more than one column called 'a': rename them"):
        read_file(path, ReadOptions(stream=stream))


def parts(folder: Path, **tables: Any) -> Path:
    """Write the Parquet files of a folder, each under its name, in which __ is a folder and _is_ an equals sign."""
    for name, table in tables.items():
        file = folder / (name.replace("__", "/").replace("_is_", "=") + ".parquet")
        file.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, file)
    return folder


@pytest.mark.parametrize("stream", ["never", "always"])
def test_files_in_other_folders_of_columns_are_refused(stream: Any, tmp_path: Path) -> None:
    bare, named = pa.table({"a": [1.0, 2.0]}), pa.table({"a": [1.0, 2.0], "town": ["Oslo", "Bern"]})
    for folder in (parts(tmp_path / "1", a=named, town_is_Rome__b=bare), parts(tmp_path / "2", a_is_1__b=bare, c=bare)):
        with pytest.raises(UserError, match=r"(lies in other key=value folders|has other columns) than"):
            read_file(folder, ReadOptions(stream=stream))


def test_long_whole_numbers_beside_fractions_are_read(tmp_path: Path) -> None:
    folder = parts(tmp_path / "x", a=pa.table({"a": [2**60 + 1, 5]}), b=pa.table({"a": [0.5, 1.5]}))
    held, _, rows, _ = both(folder)
    assert np.asarray(held.train.x)[:, 0].tolist() == [2.0**60, 5.0, 0.5, 1.5]
    assert_same(held, rows)


def test_folders_may_be_named_by_very_long_numbers(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0]})
    folder = parts(tmp_path / "x", **{f"key_is_{10**19}__a": table, "key_is_7__a": table})
    held, _, rows, _ = both(folder)
    assert np.asarray(held.train.x)[:, 1].tolist() == [1e19, 1e19, 7.0, 7.0]
    assert_same(held, rows)


def test_the_folder_that_is_named_decides_which_folders_are_columns(tmp_path: Path) -> None:
    folder = parts(tmp_path / "people", year_is_2020__people=pa.table({"a": np.arange(9.0) % 4}))
    for source, features in ((folder, ("a", "year")), (folder / "year=2020" / "people.parquet", ("a",))):
        assert read_file(source, ReadOptions(stream="always"))[0].feature_names == features


def test_a_source_may_have_a_long_name(tmp_path: Path) -> None:
    path = written(mixed_table(), tmp_path / f"{'ö' * 120}.csv")
    held, _, rows, _ = both(path, label="class")
    assert_same(held, rows)


def test_later_dates_in_text_are_written_as_all_their_pieces_say(tmp_path: Path) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days) for days in range(60)]
    _, preparation = from_arrays(pa.table({"day": days, "a": np.arange(60) % 7}))
    early, late = (
        [f"{row % 12 + 1:02d}/{row % 11 + 1:02d}/2020,{row % 7}" for row in range(1500)],
        [f"{row % 28 + 1:02d}/02/2020,{row % 7}" for row in range(1500)],
    )
    path = tmp_path / "later.csv"
    path.write_text("\n".join(["day,a", *early, *late]))
    assert_same(
        preparation.read(path, LaterOptions(stream="never")), preparation.read(path, LaterOptions(stream="always"))
    )
    path.write_text("\n".join(["day,a", *early, "12/31/2020,1", "31/12/2020,1"]))
    found = set()
    for stream in ("never", "always"):
        with pytest.raises(UserError) as error:
            preparation.read(path, LaterOptions(stream=stream))
        found.add(str(error.value))
    assert len(found) == 1


def test_missing_labels_of_a_later_table_are_all_counted(tmp_path: Path) -> None:
    _, preparation = read_file(written(mixed_table(), tmp_path / "mixed.parquet"), ReadOptions(label="class"))
    later = mixed_table(seed=1)
    labels = [None if row % 300 == 299 else label for row, label in enumerate(later.column("class").to_pylist())]
    path = written(later.drop_columns(["class"]).append_column("class", pa.array(labels)), tmp_path / "later.parquet")
    for stream in ("never", "always"):
        with pytest.raises(UserError, match=r"the label of data row 300 is missing \(6 missing in all\)"):
            preparation.read(path, LaterOptions(stream=stream))
        assert len(preparation.read(path, LaterOptions(stream=stream), labelled=False).train) == ROWS


def test_long_texts_come_in_smaller_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{row} " + "word " * 200 for row in range(ROWS)]
    path = written(pa.table({"a": np.arange(ROWS) % 7, "text": texts}), tmp_path / "long.parquet")
    monkeypatch.setattr(parquet, "PIECE_BYTES", 100_000)
    pieces = [piece for _, piece in parquet.open_parquet(path).pieces(["text"])]
    assert 10_000 < max(piece.nbytes for piece in pieces) <= 100_000
    assert pa.concat_tables(pieces).column("text").to_pylist() == texts


def test_a_set_of_the_catalogue_reads_later_tables_in_pieces_where_the_user_says(tmp_path: Path) -> None:
    data, preparation = open_source("digits")
    path = tmp_path / "later.csv"
    rows = np.asarray(data.train.x).reshape(-1, 64)[:50]
    path.write_text("\n".join([",".join(f"x{i}" for i in range(64)), *(",".join(map(str, row)) for row in rows)]))
    later = preparation.read(path, LaterOptions(stream="always", cache=tmp_path / "here", drop=()))
    assert isinstance(later.train.x, LazyArray)
    assert list((tmp_path / "here").glob("*.rows"))


def test_very_many_categories_have_codes_of_their_own() -> None:
    fitting = Fitting(70_000, codes=((0, 70_000),))
    rows = np.zeros((2, 70_000))
    rows[0, 69_999] = rows[1, 3] = 1.0
    fitting.add(rows)
    layout = fitting.layout()
    np.testing.assert_array_equal(layout.unpack(layout.pack(rows)), rows)
