"""A table is embedded in parts by one process, and the work goes on where it ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

from pinoise.data.table.parquet import Place, find_place, open_parquet
from pinoise.engines.embedding import plan_work
from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.evaluation.parts import begin, check_parts, part_name, write_part
from pinoise.model import Model

from .conftest import FILES, ROWS


def test_parts_hold_every_row_once_in_order_as_one_process_embeds_the_whole_table(
    run: Model, table: Path, tmp_path: Path
) -> None:
    work = plan_work(run, str(table), str(tmp_path / "out"), keep=["id", "year"])
    for number in work.missing:
        assert write_part(work.out, number, work.tables(number)) == work.plan.rows[number]
    check_parts(work.out, work.plan)
    found = ds.dataset(tmp_path / "out").to_table()
    assert found.column("id").to_pylist() == list(range(FILES * ROWS))
    assert set(found.column("year").to_pylist()) == {2020, 2021}
    whole = ds.dataset(table, partitioning="hive").to_table()
    rows = run.rows(run.preparation.read(whole, labelled=False).train.x, where="people")
    columns = np.stack([found.column(name).to_numpy() for name in run.column_names], axis=1)
    np.testing.assert_allclose(columns, embed(run.embedding, rows), rtol=1e-4, atol=1e-5)
    assert any("missing value" in sentence for sentence in work.notes)


def test_work_goes_on_with_the_parts_that_are_missing(run: Model, table: Path, tmp_path: Path) -> None:
    first = plan_work(run, str(table / "year=2020"), str(tmp_path / "out"))
    assert len(first.missing) == 20
    for number in (0, 7):
        write_part(first.out, number, first.tables(number))
    (tmp_path / "out" / "_unfinished-part-00001.parquet.0123").write_bytes(b"of a process that was killed")
    again = plan_work(run, str(table / "year=2020"), str(tmp_path / "out"))
    assert set(range(20)) - set(again.missing) == {0, 7}
    with pytest.raises(
        UserError, match=r"out: part-00001.parquet cannot be read; delete it and give the command again"
    ):
        check_parts(again.out, again.plan)


def test_a_part_that_cannot_be_written_is_one_sentence(run: Model, table: Path, tmp_path: Path) -> None:
    work = plan_work(run, str(table), str(tmp_path / "out"))
    (tmp_path / "out" / "_plan.json").unlink()
    (tmp_path / "out").rmdir()
    with pytest.raises(UserError, match=r"out cannot be written \(.*No such file or directory\): make room or choose"):
        work.write(2)


def test_a_part_of_other_rows_is_noticed(run: Model, table: Path, tmp_path: Path) -> None:
    work = plan_work(run, str(table / "year=2020" / "00.parquet"), str(tmp_path / "out"))
    write_part(work.out, 0, (part.slice(1) for part in work.tables(0)))
    with pytest.raises(UserError, match=rf"{part_name(0)} has {ROWS - 3} rows instead of {ROWS}"):
        check_parts(work.out, work.plan)


def test_a_filesystem_that_is_not_local_never_shows_half_a_part(run: Model, table: Path, tmp_path: Path) -> None:
    work = plan_work(run, str(table / "year=2020" / "00.parquet"), str(tmp_path / "local"))
    far = Place(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "far", "far")
    assert begin(far, work.plan) == [0]

    def broken() -> Iterator[Any]:
        yield from work.tables(0)
        raise UserError("the last row cannot be read.")

    with pytest.raises(UserError, match="the last row"):
        write_part(far, 0, broken())
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["_plan.json"]
    write_part(far, 0, work.tables(0))
    write_part(work.out, 0, work.tables(0))
    assert begin(far, work.plan) == []
    assert (tmp_path / "far" / part_name(0)).read_bytes() == (tmp_path / "local" / part_name(0)).read_bytes()


def test_another_engine_is_refused(pinoise: Any, run: Model) -> None:
    refused = pinoise("embed", run.path, "--data", "x.parquet", "--out", "out", "--engine", "dask")
    assert refused.sentence == "unknown engine 'dask'. Allowed: ray."


def test_another_embedding_is_not_mixed_in(run: Model, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    work = plan_work(run, str(table), str(out))
    write_part(work.out, 3, work.tables(3))
    with pytest.raises(UserError, match="holds another embedding: choose another folder"):
        plan_work(run, str(table), str(out), keep=["id"])
    anew = plan_work(run, str(table), str(out), keep=["id"], force=True)
    assert len(anew.missing) == FILES
    assert not (out / part_name(3)).exists()


def test_changed_data_is_another_embedding(run: Model, table: Path, tmp_path: Path) -> None:
    source = tmp_path / "one.parquet"
    people = pq.read_table(table / "year=2020" / "00.parquet", partitioning=None)
    pq.write_table(people, source)
    plan_work(run, str(source), str(tmp_path / "out"))
    pq.write_table(people.slice(0, 700), source)
    with pytest.raises(UserError, match="holds another embedding"):
        plan_work(run, str(source), str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("data", "out", "keep", "sentence"),
    [
        ("nowhere", "out", [], r"the file .*nowhere does not exist\."),
        ("{table}", "{table}/out", [], "lies in .*, which is read: choose another folder to write"),
        ("{table}", "out", ["idd"], "unknown column of .*: did you mean 'id'"),
        ("{table}", "out", ["age"], "--keep age: the embedding has this column already"),
        ("{table}", "{run}", [], "is not empty: choose another folder"),
        ("{table}", "{run}/config.yaml", [], "is a file: parts are written to a folder"),
        ("{run}/config.yaml", "out", [], "config.yaml has an unknown extension: allowed are"),
        ("gopher://x", "out", [], "gopher://x cannot be reached"),
        ("{damaged}.parquet", "out", [], r"damaged.parquet is damaged, cut off or not what its name says \(.*\)"),
    ],
)
def test_a_mistake_is_one_sentence(
    run: Model, table: Path, tmp_path: Path, data: str, out: str, keep: list[str], sentence: str
) -> None:
    damaged = tmp_path / "damaged"
    damaged.with_suffix(".parquet").write_bytes(b"a,b\n1,2\n")
    data, out = (text.format(table=table, run=run.path, damaged=damaged) for text in (data, out))
    data, out = (text if "://" in text else str(tmp_path / text) for text in (data, out))
    with pytest.raises(UserError, match=sentence):
        plan_work(run, data, out, keep=keep)


def written(path: Path, table: pa.Table, **columns: Any) -> Path:
    """Write a table with some columns changed, or without them where they are None."""
    for name, cells in columns.items():
        table = table.drop_columns([name])
        table = table if cells is None else table.append_column(name, cells)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


@pytest.fixture
def people(table: Path) -> pa.Table:
    return pq.read_table(table / "year=2020" / "00.parquet", partitioning=None).slice(0, 60)


def test_files_are_taken_in_the_order_of_a_reader_of_the_folder(run: Model, people: pa.Table, tmp_path: Path) -> None:
    for number, name in enumerate(("key=New/a", "key=New York/a", "key=New-Delhi/a")):
        written(tmp_path / "in" / f"{name}.parquet", people.slice(number, 1))
    work = plan_work(run, str(tmp_path / "in"), str(tmp_path / "out"), keep=["id"])
    found = [row for number in work.missing for part in work.tables(number) for row in part.column("id").to_pylist()]
    table = open_parquet(find_place(str(tmp_path / "in"))).table()
    assert found == [row for _, batch in table.batches(["id"]) for row in batch.column("id").to_pylist()]


def test_other_files_of_a_folder_are_left_out(run: Model, table: Path, tmp_path: Path) -> None:
    table = shutil.copytree(table, tmp_path / "people")
    before = plan_work(run, str(table), str(tmp_path / "out")).plan
    (table / "readme.txt").write_text("how this table was made", encoding="utf-8")
    (table / "year=2020" / "_SUCCESS").touch()
    (table / "_old").mkdir()
    (table / "_old" / "a.parquet").write_bytes(b"of another time")
    assert plan_work(run, str(table), str(tmp_path / "out")).plan == before


def test_files_may_differ_in_types_but_not_in_columns(run: Model, people: pa.Table, tmp_path: Path) -> None:
    whole = pa.array(range(60), pa.int32())
    written(tmp_path / "in" / "a.parquet", people, x0=whole, x1=pa.nulls(60))
    written(tmp_path / "in" / "b.parquet", people)
    work = plan_work(run, str(tmp_path / "in"), str(tmp_path / "out"))
    found = np.concatenate([np.stack(part.columns, axis=1) for number in work.missing for part in work.tables(number)])
    rows = run.rows(run.preparation.read(tmp_path / "in", labelled=False).train.x, where="in")
    np.testing.assert_allclose(found, embed(run.embedding, rows), rtol=1e-4, atol=1e-5)
    written(tmp_path / "in" / "b.parquet", people, x3=None)
    with pytest.raises(UserError, match=r"b\.parquet has other columns .* than .*a\.parquet \(x3\)"):
        plan_work(run, str(tmp_path / "in"), str(tmp_path / "other"))


def test_a_mistake_in_a_later_part_is_named_with_its_row_of_the_whole(
    run: Model, people: pa.Table, tmp_path: Path
) -> None:
    written(tmp_path / "in" / "a.parquet", people)
    written(tmp_path / "in" / "b.parquet", people, x0=pa.array([*np.arange(59.0), np.inf]))
    work = plan_work(run, str(tmp_path / "in"), str(tmp_path / "out"))
    with pytest.raises(UserError, match="column 'x0', data row 120 holds inf, which is too large"):
        write_part(work.out, 1, work.tables(1))
