"""The suite cannot pass without looking: faults that are planted are found, each for what it is."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from tests.hostile.case import MARKER, Case, Outcome, Wrong
from tests.hostile.families import SIZES, cases
from tests.hostile.server import run_case

from pinoise.cli.app import app

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs processes to watch: Linux")


@pytest.fixture
def verb() -> Iterator[Callable[[Callable[[], None]], Case]]:
    """Give the command one more verb, and return a case that calls it."""
    before = list(app.registered_commands)

    def add(function: Callable[[], None]) -> Case:
        app.command(name="planted")(function)
        return Case(
            "planted", 0, "a planted fault", 0, ("planted",), lambda reference, rng: _write("input.csv"), limit=1
        )

    yield add
    app.registered_commands[:] = before


def _write(name: str) -> None:
    Path(name).write_text("sound")


def _raise(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _fill_memory() -> None:
    held = bytearray(1 << 33)
    print(len(held))


def _say(*lines: str, code: int = 2) -> Callable[[], None]:
    def call() -> None:
        for line in lines:
            print(line, file=sys.stderr)
        raise typer.Exit(code)

    return call


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (_raise(RuntimeError("planted")), "traceback"),
        (_raise(MemoryError()), "memory"),
        (_fill_memory, "memory"),
        (lambda: time.sleep(60), "hang"),
        (_crash, "signal"),
        (lambda: _write(MARKER), "payload executed"),
        (lambda: _write("input.csv.new"), "files changed"),
        (lambda: Path("input.csv").write_text("other") and None, "files changed"),
        (lambda: Path("input.csv").unlink(), "files changed"),
        (lambda: Path("input.csv").chmod(0o600), "files changed"),
        (_say(), "mute"),
        (_say("pinoise: one.", "pinoise: two."), "not one sentence"),
        (_say("something else"), "not one sentence"),
        (_say("pinoise: a\x1b[2Jb."), "control characters"),
        (_say("pinoise: " + "x" * 5000), "endless sentence"),
        (_say("pinoise: a code of its own.", code=1), "exit code"),
    ],
)
def test_a_planted_fault_of_the_command_is_found(
    verb: Callable[[Callable[[], None]], Case], tmp_path: Path, fault: Callable[[], None], cause: str
) -> None:
    found = run_case(verb(fault), tmp_path, tmp_path)
    assert (found.kind, found.cause) == ("failure", cause), found


def test_a_sentence_and_a_right_result_are_told_apart(
    verb: Callable[[Callable[[], None]], Case], tmp_path: Path
) -> None:
    refused = verb(_say("note: first this", "pinoise: x.csv is empty."))
    assert run_case(refused, tmp_path, tmp_path) == Outcome("sentence", "", "x.csv is empty.")
    assert run_case(replace(refused, expect="right"), tmp_path, tmp_path).cause == "refused"
    accepted = verb(lambda: _write("out.npy"))
    accepted = replace(accepted, call=("planted",), writes=("out.npy",))
    assert run_case(accepted, tmp_path, tmp_path).kind == "right"
    assert run_case(replace(accepted, expect="sentence"), tmp_path, tmp_path).cause == "accepted"
    assert run_case(replace(accepted, right=lambda _: "it is wrong"), tmp_path, tmp_path).cause == "wrong result"
    assert run_case(replace(accepted, right=lambda _: str(1 / 0)), tmp_path, tmp_path).cause == "wrong result"


@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [
        (ValueError("X has NaN."), "sentence", ""),
        (KeyError("x"), "failure", "traceback"),
        (Wrong("zeros"), "failure", "wrong result"),
        (SystemExit(3), "failure", "traceback"),
        (None, "right", ""),
    ],
)
def test_an_error_of_a_python_call_is_judged(
    tmp_path: Path, error: BaseException | None, kind: str, cause: str
) -> None:
    call = _raise(error) if error is not None else lambda: None
    found = run_case(Case("planted", 0, "a planted fault", 0, call), tmp_path, tmp_path)
    assert (found.kind, found.cause) == (kind, cause), found


def test_the_suite_is_as_large_as_it_says_and_a_seed_reproduces_it() -> None:
    assert sum(few for few, _ in SIZES.values()) >= 300
    assert sum(many for _, many in SIZES.values()) >= 2000
    for family, (_, many) in SIZES.items():
        one, two = cases(family, 0), cases.__wrapped__(family, 0)
        assert len(one) == many
        assert [case.label for case in one] == [case.label for case in two]
        assert len({(case.label, case.seed) for case in one}) > 40
    assert [case.rng.random() for case in cases("data", 0)[:9]] == [case.rng.random() for case in cases("data", 0)[:9]]
    assert [case.rng.random() for case in cases("data", 1)[:9]] != [case.rng.random() for case in cases("data", 0)[:9]]
