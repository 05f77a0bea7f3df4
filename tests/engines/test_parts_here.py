"""An embedding in parts by one process or two: of any data, and complete after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from pinoise.engines.embedding import plan_work
from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.evaluation.parts import part_name
from pinoise.model import Model, load_run
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training

ROWS = 1000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table, and the table as Parquet and CSV."""
    folder = tmp_path_factory.mktemp("parts")
    random = np.random.default_rng(0)
    table = pa.table({"id": np.arange(ROWS) + 7, **{name: random.normal(size=ROWS) for name in "abc"}})
    pyarrow.parquet.write_table(table, folder / "a.parquet", row_group_size=100)
    pyarrow.csv.write_csv(table, folder / "a.csv")
    settings = parse_settings(
        {
            "data": {"source": str(folder / "a.parquet"), "drop": ["id"]},
            "encoder": {"name": "mlp", "hidden": 16, "out_features": 8},
            "training": {"epochs": 1},
        }
    )
    run_training(folder / "run", settings, reporter=Quiet())
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Model:
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pinoise.engines.embedding.PIECE_ROWS", 300)
    monkeypatch.setattr("pinoise.engines.embedding.BATCH_ROWS", 128)
    monkeypatch.setattr("pinoise.data.table.parquet.BATCH_ROWS", 128)
    monkeypatch.setattr("pinoise.data.table.parquet.PIECE_ROWS", 300)
    return load_run(place / "run")


def whole(run: Model, source: Path) -> np.ndarray[Any, Any]:
    return embed(run.embedding, run.rows(run.read(str(source), labelled=False).train.x, where="a"))


def read(folder: Path) -> Any:
    return pa.concat_tables([pyarrow.parquet.read_table(file) for file in sorted(folder.glob("part-*.parquet"))])


def test_parts_of_a_text_file_are_its_rows_in_order_and_missing_ones_are_written_again(
    run: Model, place: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    work = plan_work(run, str(place / "a.csv"), str(out))
    work.write_missing()
    assert work.plan.rows == (300, 300, 300, 100)
    np.testing.assert_allclose(np.stack(read(out).columns, axis=1), whole(run, place / "a.csv"), atol=1e-5)
    (out / part_name(2)).unlink()
    (out / "_unfinished-part-00002.parquet.0123456789abcdef").write_bytes(b"half")
    (out / "_unfinished-_plan.json.0123456789abcdef").write_bytes(b"half")
    again = plan_work(run, str(place / "a.csv"), str(out))
    assert again.missing == (2,)
    written: list[int] = []
    again.write_missing(done=written.append)
    assert written == [2]
    assert read(out).num_rows == ROWS
    assert not list(out.glob("_unfinished*"))


@pytest.mark.processes
def test_a_killed_command_goes_on_and_every_row_is_there_once(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    slow = (
        "import sys, time, pinoise.data.table.parquet as parquet, pinoise.engines.embedding as e\n"
        "parquet.PIECE_ROWS = 100\n"
        "write, last = e.write_part, int(sys.argv[1])\n"
        "def waiting(out, number, tables):\n"
        "    time.sleep(600 if number > last else 0); return write(out, number, tables)\n"
        "e.write_part = waiting\n"
        "from pinoise.cli import main\n"
        f"sys.argv = ['pinoise', 'embed', {str(place / 'run')!r}, '--data', {str(place / 'a.parquet')!r}, "
        f"'--keep', 'id', '--out', {str(out) + '/'!r}]\n"
        "main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", slow, "3"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(list(out.glob("part-*"))) < 4 and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    there = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    assert len(there) == 4
    done = subprocess.run([sys.executable, "-c", slow, "9"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"{len(there)} of 10 parts are there already" in done.stderr
    assert read(out).column("id").to_pylist() == list(range(7, ROWS + 7))
    assert all((out / name).stat().st_mtime_ns == written for name, written in there.items())


@pytest.mark.processes
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_two_processes_write_the_parts_that_one_writes(name: str, run: Model, place: Path, tmp_path: Path) -> None:
    for processes in (1, 2):
        work = plan_work(run, str(place / name), str(tmp_path / str(processes)), keep=["id"])
        written: list[int] = []
        work.write_missing(processes=processes, done=written.append)
        assert written == list(range(len(work.plan.rows)))
        assert len(written) == 4
    one, two = read(tmp_path / "1"), read(tmp_path / "2")
    assert [int(cell) for cell in two.column("id").to_pylist()] == list(range(7, ROWS + 7))
    assert one.column_names == two.column_names
    for mine, other in zip(one.columns[1:], two.columns[1:], strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.processes
def test_a_killed_worker_is_one_sentence_and_the_same_command_goes_on(
    run: Model, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.engines.embedding.PIECE_ROWS", 5)
    work, out = plan_work(run, str(place / "a.csv"), str(tmp_path / "out"), keep=["id"]), tmp_path / "out"

    def kill(number: int) -> None:
        if number == 0:
            os.kill(int(active_children()[0].pid or 0), signal.SIGKILL)

    with pytest.raises(UserError, match=r"^a process ended before its work was done: give the command again\.$"):
        work.write_missing(processes=2, done=kill)
    assert not active_children()
    there = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    again = plan_work(run, str(place / "a.csv"), str(out), keep=["id"])
    assert 0 < len(again.missing) == ROWS // 5 - len(there) < ROWS // 5
    again.write_missing()
    assert [int(cell) for cell in read(out).column("id").to_pylist()] == list(range(7, ROWS + 7))
    assert all((out / name).stat().st_mtime_ns == written for name, written in there.items())
