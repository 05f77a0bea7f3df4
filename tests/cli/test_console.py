from __future__ import annotations

import io
import json
import re
import sys
import warnings
from typing import NoReturn

import pytest

from pinoise.cli.console import print_json, print_table, reporters, say, warnings_as_notes
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


def test_one_bar_replaces_another_and_none_is_drawn_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", shown)
    with reporters(epochs=False) as make:
        first = make("first")
        assert shown.getvalue() == ""  # a download writes its own bar here
        first.start(total_steps=4, done_steps=1)
        first.step(3)
        first.epoch(Record(1, 4, 2.5, {}, 0.1))
        say("a sentence")
        make("second").start(total_steps=1, done_steps=0)
    lines = re.split(r"[\r\n]+", shown.getvalue())
    assert "a sentence" in lines
    assert next(i for i, line in enumerate(lines) if "second" in line) > lines.index("a sentence")
    assert "first" in lines[1]
    assert not lines[-1].strip()  # the last bar is taken away, too


def test_without_a_terminal_titles_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with reporters(epochs=False) as make:
        assert all(isinstance(make(f"fit {number}"), Quiet) for number in range(50))
    assert capsys.readouterr().err == "fit 0\n"
    with reporters(epochs=True) as make:
        assert isinstance(make("run"), Lines)


def test_json_has_null_where_a_number_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"nan": float("nan"), "deep": [{"inf": (float("inf"), -float("inf"), 1.5)}], "σ": "NaN", "no": None, "n": 3}
    print_json(value)

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(constant)

    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == {
        **{"nan": None, "deep": [{"inf": [None, None, 1.5]}], "σ": "NaN", "no": None, "n": 3},
    }
