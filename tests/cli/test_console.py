from __future__ import annotations

import io
import json
import sys
import warnings
from typing import NoReturn

import pytest
from rich.console import Console
from rich.progress import Progress

from pinoise.cli.console import Reporters, TerminalBar, print_json, print_table, reporters, warnings_as_notes
from pinoise.training.callbacks import Lines, Quiet, Record


def test_warnings_become_notes_each_once_and_without_code(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with warnings_as_notes():
        for _ in range(3):
            warnings.warn("few rows\nin detail", stacklevel=1)
            warnings.warn("for programmers", FutureWarning, stacklevel=1)
        warnings.warn("many columns", RuntimeWarning, stacklevel=1)
    assert capsys.readouterr().err == "note: few rows\nnote: many columns\n"
    assert warnings.showwarning is before


def test_a_table_is_aligned_uncut_and_takes_text_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_table(["[red]name", "n"], [["a:smile:b", "1"], ["x" * 60, "1000"]])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line[0] != "─"] == [
        ["[red]name", "n"],
        ["a:smile:b", "1"],
        ["x" * 60, "1000"],
    ]
    assert len({len(line.rstrip()) for line in lines}) <= 2  # figures end in one column; the rule may be wider


def test_a_bar_follows_training_and_goes_away() -> None:
    shown = io.StringIO()
    with Progress(console=Console(file=shown, force_terminal=True, width=80), transient=True) as progress:
        bar = TerminalBar(progress, "runs/x")
        bar.start(total_steps=4, done_steps=1)
        bar.step(3)
        bar.epoch(Record(1, 3, 2.5, {"sigma_mean": 1.0}, 0.1))
        (task,) = progress.tasks
        assert (task.completed, task.total, task.description) == (3, 4, "runs/x · loss 2.500")
        bar.done()
        assert not progress.tasks


def test_one_bar_replaces_another() -> None:
    with Progress(console=Console(file=io.StringIO(), force_terminal=True)) as progress:
        make = Reporters(progress, epochs=False)
        for title in ("first", "second"):
            make(title).start(total_steps=1, done_steps=0)
        assert [task.description for task in progress.tasks] == ["second"]


def test_without_a_terminal_titles_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    make = Reporters(None, epochs=False)
    assert all(isinstance(make(f"fit {number}"), Quiet) for number in range(50))
    assert capsys.readouterr().err == "fit 0\n"
    assert isinstance(Reporters(None, epochs=True)("run"), Lines)


def test_json_has_null_where_a_number_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"nan": float("nan"), "deep": [{"inf": (float("inf"), -float("inf"), 1.5)}], "σ": "NaN", "no": None, "n": 3}
    print_json(value)

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(constant)

    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == {
        **{"nan": None, "deep": [{"inf": [None, None, 1.5]}], "σ": "NaN", "no": None, "n": 3},
    }


def test_no_bar_is_drawn_before_training_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", shown)
    with reporters(epochs=True) as make:
        bar = make("runs/x")
        assert shown.getvalue() == ""
        assert sys.stderr is shown  # a download writes its own bar here
        bar.start(total_steps=2, done_steps=0)
        assert sys.stderr is not shown
    assert sys.stderr is shown
    assert "runs/x" in shown.getvalue()
