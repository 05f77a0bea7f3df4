"""A run that was stopped or killed is used as it stands: its last checkpoint counts, and one note says so."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from tests.commands import ended, start, until

from pinoise.model import UnfinishedRunWarning, load_run
from pinoise.training.folder import WEIGHTS
from pinoise.training.running import read_metrics

Command = Callable[..., Any]
EPOCHS = 100_000  # more than any machine trains before it is stopped
SMALL = ["--rows", "256", "--batch-size", "64", "--set", "training.checkpoint_every=6"]


@pytest.fixture(params=["SIGINT", "SIGTERM", "SIGKILL"])
def stopped(request: pytest.FixtureRequest, tiny: list[str], people: Path) -> Path:
    """A run that a signal stopped some epochs after its first checkpoint, in the current folder."""
    if not hasattr(signal, request.param) or sys.platform == "win32":
        pytest.skip("signals are POSIX's")
    arguments = ["--data", "people.csv", "--target", "group", "--out", "run", *SMALL, *tiny, "--epochs", str(EPOCHS)]
    process, number = start("train", *arguments), getattr(signal, request.param)
    until(process, Path("run/checkpoints/last.ckpt"))
    until(process, Path("run/metrics.csv"), lines=4)
    process.send_signal(number)
    done = ended(process)
    assert done.code == (130 if number != signal.SIGKILL else -signal.SIGKILL), done.err
    return Path("run")


@pytest.mark.processes
def test_a_stopped_run_is_scored_embedded_reported_and_predicts(pinoise: Command, stopped: Path) -> None:
    with pytest.warns(UnfinishedRunWarning, match=rf"run is unfinished, at epoch \d+ of {EPOCHS}, and is used as it"):
        run = load_run(stopped)
    said = f"note: run is unfinished, at epoch {run.epoch} of {EPOCHS}, and is used as it stands; go on with: pinoise"
    assert not any((stopped / name).exists() for name in WEIGHTS)
    assert 0 < run.epoch <= read_metrics(stopped / "metrics.csv")[-1].epoch
    assert not run.finished

    people = ["--data", "people.csv"]
    embedded = pinoise("embed", stopped, *people, "--out", "e.npy")
    scored = pinoise("evaluate", stopped, *people, "--label", "group", "--json")
    predicted = pinoise("predict", stopped, *people, "--out", "p.csv")
    reported = pinoise("report", stopped)
    for result in (embedded, scored, predicted, reported):
        assert result.code == 0, result.err
        assert result.err.count("is unfinished") == 1, result.err
        assert said in result.err
    assert np.load("e.npy").shape[0] == 60
    assert json.loads(scored.out)["state"] == run.state
    truth = pyarrow.csv.read_csv("people.csv")["group"].to_pylist()
    assert np.mean(np.equal(pyarrow.csv.read_csv("p.csv")["class"].to_pylist(), truth)) > 0.9
    assert not (stopped / "classifier.safetensors").exists()
    assert "scores it again" not in (stopped / "report.html").read_text()


def test_a_run_stopped_before_its_first_checkpoint_says_so(pinoise: Command, digits_run: Path) -> None:
    for path in [digits_run / "encoder.safetensors", *(digits_run / "checkpoints").iterdir()]:
        path.unlink()
    sentence = pinoise("embed", digits_run, "--data", "digits", "--out", "e.npy").sentence
    assert "checkpoints is empty: the run was stopped before its first checkpoint" in sentence


def test_scores_of_an_earlier_state_are_not_shown_as_current(pinoise: Command, digits_run: Path) -> None:
    assert pinoise("evaluate", digits_run).code == 0
    evaluation = json.loads((digits_run / "evaluation.json").read_text())
    assert load_run(digits_run).is_current(evaluation)
    assert pinoise("report", digits_run).code == 0
    page = digits_run / "report.html"
    assert "scores it again" not in page.read_text()

    assert pinoise("train", "--resume", digits_run, "--epochs", "3").code == 0
    assert not load_run(digits_run).is_current(evaluation)
    elsewhere = digits_run.parent / "elsewhere"
    for out in ([], ["--out", elsewhere]):  # a report scores a state that was not scored
        assert pinoise("report", digits_run, *out).code == 0
        assert "scores it again" not in page.read_text()
    assert load_run(digits_run).is_current(json.loads((digits_run / "evaluation.json").read_text()))
