"""Tables whose rows stay on disk: the same columns, labels and notes as in memory, made once."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from pinoise.data import Dataset, LaterOptions, ReadOptions, fingerprint_parts, from_arrays, open_source, read_file
from pinoise.data import preparation as prepared
from pinoise.data.lazy import LazyArray
from pinoise.data.preparation import TablePreparation
from pinoise.data.table import batches, encoding, kinds, parquet
from pinoise.errors import UserError

ROWS = 2000


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let small tables come in many batches."""
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(parquet, "LEAST_ROWS", 300)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 300)
    monkeypatch.setattr(encoding, "_BLOCK_VALUES", 20_000)
    monkeypatch.setattr(batches, "BLOCK_BYTES", 1 << 14)


def mixed_table(rows: int = ROWS, *, seed: int = 0) -> Any:
    """Every kind of column, with gaps."""
    random = np.random.default_rng(seed)

    def gaps(values: list[Any], share: float = 0.1) -> list[Any]:
        return [None if gone else value for value, gone in zip(values, random.random(rows) < share, strict=True)]

    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "Unnamed: 0": random.permutation(rows),
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
    assert rows.notes[-1].startswith("read in batches")
    np.testing.assert_array_equal(held.train.y, rows.train.y)
    x = np.asarray(held.train.x)
    np.testing.assert_array_equal(rows.train.x[:], x.astype(rows.train.x.dtype))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("missing", ["median", "mean", "zero"])
def test_a_table_on_disk_is_that_in_memory_to_the_bit(suffix: str, missing: str, tmp_path: Path) -> None:
    path = written(mixed_table(), tmp_path / f"mixed{suffix}")
    held, known, rows, learned = both(
        path, label="class", missing=missing, categorical=("constant",), text=("remark",), max_categories=20
    )
    assert learned == known
    assert_same(held, rows)
    assert rows.train.x.dtype == np.float64  # single precision would lose seconds
    for column in ("customer_id", "'key'", "'Unnamed: 0'"):
        assert any(column in note for note in held.notes)


def test_rows_are_in_single_precision_where_that_loses_nothing(tmp_path: Path) -> None:
    path = written(mixed_table().drop_columns(["seconds", "normal"]), tmp_path / "mixed.parquet")
    held, _, rows, _ = both(path, label="class")
    assert_same(held, rows)
    assert rows.train.x.dtype == np.float32


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


def test_a_larger_table_is_learned_from_some_rows_of_all_of_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(mixed_table(), tmp_path / "mixed.csv")
    whole, _ = read_file(path, ReadOptions(label="class"))
    monkeypatch.setattr(kinds, "LEARNING_ROWS", 500)
    held, known, rows, learned = both(path, label="class")
    assert learned == known
    assert_same(held, rows)
    assert f"what each column is was learned from 500 of {ROWS} rows, drawn with seed 0" in held.notes
    assert len(held.train) == ROWS
    np.testing.assert_array_equal(held.train.y, whole.train.y)  # classes are counted on all rows
    (column,) = (column for column in known.encoding.columns if column.name == "normal")
    values = mixed_table().column("normal").drop_null().to_numpy()
    assert column.fill == pytest.approx(np.median(values), abs=0.2)  # type: ignore[union-attr]


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
    towns = ["Rome", "Rome", "Oslo"]
    tables = [
        whole.drop_columns(["town"]).slice(part * 600, 600).append_column("town", pa.array([towns[part]] * 600))
        for part in order
    ]
    single = written(pa.concat_tables(tables), tmp_path / "single.parquet")
    np.testing.assert_array_equal(read_file(single, ReadOptions(label="class"))[0].train.x, held.train.x)


def test_no_file_of_a_folder_is_lost_by_the_case_of_its_extension(tmp_path: Path) -> None:
    for start, name in ((0, "a.parquet"), (2, "b.PARQUET")):
        pyarrow.parquet.write_table(pa.table({"n": [start, start + 1]}), tmp_path / name)
    assert np.asarray(read_file(tmp_path)[0].train.x).ravel().tolist() == [0, 1, 2, 3]


def test_files_of_a_folder_must_have_the_same_columns(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"a": [1, 2], "b": [1.0, 2.0]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"a": [1, 2], "c": [1.0, 2.0]}), tmp_path / "2.parquet")
    with pytest.raises(
        UserError, match=r"2\.parquet has other columns .* than .*1\.parquet \(b, c\): give files of one table"
    ):
        read_file(tmp_path)
    pyarrow.parquet.write_table(pa.table({"a": ["x", "y"], "b": [1.0, 2.0]}), tmp_path / "2.parquet")
    with pytest.raises(
        UserError, match=r"1\.parquet and the files beside it: .*\ba\b.*int64.*string.*: write it alike"
    ):
        read_file(tmp_path)


@pytest.mark.parametrize("stream", ["never", "always"])
def test_a_column_that_turns_to_text_late_is_named_with_its_row(stream: Any, tmp_path: Path) -> None:
    lines = ["a,b", *(f"{number},{number / 7}" for number in range(ROWS)), "3,oops"]
    path = tmp_path / "late.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(UserError, match=f"column 'b' holds numbers, but data row {ROWS + 1} holds 'oops'"):
        read_file(path, ReadOptions(stream=stream))
    assert not list((tmp_path / "cache").rglob("*.npy"))


@pytest.mark.parametrize("stream", ["never", "always"])
@pytest.mark.parametrize("learning", [500, 1 << 18])
def test_a_late_number_that_cannot_be_used_is_named_with_its_row(
    stream: Any, learning: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "LEARNING_ROWS", learning)
    values = np.arange(ROWS, dtype=np.float64)
    values[-5] = np.inf
    path = written(pa.table({"a": values, "b": np.arange(ROWS) % 7}), tmp_path / "late.parquet")
    with pytest.raises(UserError, match=f"column 'a', data row {ROWS - 4} holds inf, which is too large"):
        read_file(path, ReadOptions(stream=stream))


@pytest.mark.parametrize("stream", ["never", "always"])
def test_a_late_missing_label_is_named_with_its_row(stream: Any, tmp_path: Path) -> None:
    labels: list[str | None] = ["a", "b"] * (ROWS // 2)
    labels[1500:1510] = [None] * 10
    path = written(pa.table({"a": np.arange(ROWS) % 7, "y": labels}), tmp_path / "late.parquet")
    with pytest.raises(UserError, match=r"the label of data row 1501 is missing \(10 missing in all\)"):
        read_file(path, ReadOptions(label="y", stream=stream))
    _, preparation = read_file(written(mixed_table(), tmp_path / "mixed.parquet"), ReadOptions(label="class"))
    later = mixed_table(seed=1)
    gone = [None if row % 300 == 299 else label for row, label in enumerate(later.column("class").to_pylist())]
    path = written(later.drop_columns(["class"]).append_column("class", pa.array(gone)), tmp_path / "later.parquet")
    with pytest.raises(UserError, match=r"the label of data row 300 is missing \(6 missing in all\)"):
        preparation.read(path, LaterOptions(stream=stream))
    assert len(preparation.read(path, LaterOptions(stream=stream), labelled=False).train) == ROWS


def test_the_rule_is_the_size_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(pa.table({"a": np.arange(100) % 7, "b": np.arange(100) % 5}), tmp_path / "a.parquet")
    assert isinstance(read_file(path)[0].train.x, np.ndarray)
    monkeypatch.setattr(prepared, "STREAM_BYTES", 100 * 2 * 8 - 1)
    assert isinstance(read_file(path)[0].train.x, LazyArray)
    data, _ = from_arrays(pa.table({"a": np.arange(900.0) % 4, "b": np.arange(900) % 2}))
    assert isinstance(data.train.x, np.ndarray)  # it is in memory already


def test_rows_are_made_once_and_again_when_the_source_or_the_cache_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = written(mixed_table(), tmp_path / "mixed.parquet"), tmp_path / "cache"
    options = ReadOptions(label="class", stream="always")
    first = read_file(path, options)[0]
    learned: list[object] = []

    def counting(*args: Any) -> Any:
        learned.append(args)
        return encoding.learn_table(*args)

    monkeypatch.setattr(prepared, "learn_table", counting)
    again = read_file(path, options)[0]
    assert not learned
    known = fingerprint_parts(first)
    assert fingerprint_parts(again) == known
    assert again.notes == first.notes
    (rows,) = cache.rglob("rows.npy")
    sound = first.train.x[:]
    content = bytearray(rows.read_bytes())
    content[1234] ^= 1
    rows.write_bytes(content)
    np.testing.assert_array_equal(read_file(path, options)[0].train.x[:], sound)
    assert len(learned) == 1
    written(mixed_table(seed=2), path)
    assert fingerprint_parts(read_file(path, options)[0]) != known
    assert len(learned) == 2
    assert len(list(cache.rglob("rows.npy"))) == 1


def test_a_source_that_has_no_batches_refuses_to_be_read_in_batches() -> None:
    with pytest.raises(UserError, match="cannot be read in batches, so stream='always' cannot apply"):
        open_source("digits", ReadOptions(stream="always"))


def parts(folder: Path, **tables: Any) -> Path:
    """Write the Parquet files of a folder, each under its name, in which __ is a folder and _is_ an equals sign."""
    for name, table in tables.items():
        file = folder / (name.replace("__", "/").replace("_is_", "=") + ".parquet")
        file.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, file)
    return folder


def test_files_in_other_folders_of_columns_are_refused(tmp_path: Path) -> None:
    bare, named = pa.table({"a": [1.0, 2.0]}), pa.table({"a": [1.0, 2.0], "town": ["Oslo", "Bern"]})
    for folder in (parts(tmp_path / "1", a=named, town_is_Rome__b=bare), parts(tmp_path / "2", a_is_1__b=bare, c=bare)):
        with pytest.raises(
            UserError, match=r"has other columns or key=value folders than|are of another type in its files"
        ):
            read_file(folder)


def test_the_folder_that_is_named_decides_which_folders_are_columns(tmp_path: Path) -> None:
    folder = parts(tmp_path / "people", year_is_2020__people=pa.table({"a": np.arange(9.0) % 4}))
    for source, features in ((folder, ("a", "year")), (folder / "year=2020" / "people.parquet", ("a",))):
        assert read_file(source, ReadOptions(stream="always"))[0].feature_names == features


def test_later_dates_in_text_are_those_of_training_if_they_begin_with_the_year(tmp_path: Path) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days) for days in range(60)]
    _, preparation = from_arrays(pa.table({"day": days, "a": np.arange(60) % 7}))
    path = tmp_path / "later.csv"
    path.write_text("day,a\n2020-01-02,1\n2020-01-03 06:00,1\n")
    found = (
        np.asarray(preparation.read(path).train.x)[:, 0] - (datetime.date(2020, 1, 1) - datetime.date(1970, 1, 1)).days
    )
    assert found.tolist() == [1, 2.25]
    path.write_text("day,a\n01/02/2020,1\n")
    with pytest.raises(UserError, match="column 'day' holds dates, but data row 1 holds '01/02/2020': write it as ISO"):
        preparation.read(path)


def test_a_set_of_the_catalogue_reads_later_tables_onto_disk_where_the_user_says(tmp_path: Path) -> None:
    data, preparation = open_source("digits")
    path = tmp_path / "later.csv"
    rows = np.asarray(data.train.x).reshape(-1, 64)[:50]
    path.write_text("\n".join([",".join(f"x{i}" for i in range(64)), *(",".join(map(str, row)) for row in rows)]))
    later = preparation.read(path, LaterOptions(stream="always"))
    assert isinstance(later.train.x, LazyArray)
    assert list((tmp_path / "cache").rglob("rows.npy"))


def test_parquet_keeps_its_types_and_damage_is_one_sentence(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, None], pa.int8()), "c": pa.array(["x", "y"]).dictionary_encode()})
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(table, path)
    found = parquet.open_parquet(parquet.find_place(str(path))).table()
    assert dict(found.kinds or {}) == {"a": pa.int8(), "c": pa.dictionary(pa.int32(), pa.string())}
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"a\.parquet is damaged"):
        read_file(path)
    pyarrow.parquet.write_table(pa.table({"a": pa.array([], pa.int8())}), path)
    with pytest.raises(UserError, match="has no rows"):
        read_file(path)
