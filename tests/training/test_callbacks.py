"""Callbacks act on training, and their mistakes do no harm to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pinoise import Callback
from pinoise.errors import UserError
from pinoise.model import load_run
from pinoise.training.callbacks import Interrupted, Outcome, Quiet, Record, checked_callbacks
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training

SMALL: dict[str, Any] = {
    "data": {"source": "digits", "rows": 200},
    "encoder": {"hidden": 16, "out_features": 8},
    "training": {"epochs": 4, "batch_size": 100, "device": "cpu", "information_draws": 0},
}


class Watcher(Callback):
    """Remembers what it was told, and acts after an epoch."""

    def __init__(self, act: Callable[[Record], bool | None] = lambda _: None) -> None:
        self.act = act
        self.heard: list[object] = []

    def on_start(self, settings: Mapping[str, Any]) -> None:
        self.heard.append(settings["training"]["epochs"])

    def on_epoch(self, record: Record) -> bool | None:
        self.heard.append(record)
        return self.act(record)

    def on_end(self, outcome: Outcome) -> None:
        self.heard.append(outcome)


def test_a_callback_hears_all_epochs_between_start_and_end(tmp_path: Path) -> None:
    watcher = Watcher()
    fitted = run_training(tmp_path / "run", parse_settings(SMALL), reporter=Quiet(), callbacks=[watcher])
    assert watcher.heard == [4, *fitted.history, "finished"]


def test_a_callback_ends_a_run_which_is_then_finished_and_can_go_on(tmp_path: Path) -> None:
    settings = parse_settings(SMALL)
    fitted = run_training(tmp_path / "run", settings, reporter=Quiet(), callbacks=[lambda record: record.epoch == 2])
    assert [record.epoch for record in fitted.history] == [1, 2]
    run = load_run(tmp_path / "run")
    assert (run.finished, run.epoch) == (True, 2)
    run_training(tmp_path / "run", settings, reporter=Quiet())
    run_training(tmp_path / "whole", settings, reporter=Quiet())
    names = ("encoder.safetensors", "noise.safetensors")
    assert all((tmp_path / "run" / n).read_bytes() == (tmp_path / "whole" / n).read_bytes() for n in names)


def test_an_exception_in_a_callback_leaves_a_run_that_resumes_to_the_same_weights(tmp_path: Path) -> None:
    def fail(record: Record) -> None:
        if record.epoch == 3:
            raise LookupError("no such trial")

    settings, watcher = parse_settings(SMALL), Watcher(fail)
    with pytest.raises(LookupError, match="no such trial"):
        run_training(tmp_path / "run", settings, reporter=Quiet(), callbacks=[watcher])
    assert watcher.heard[-1] == "failed"
    assert not (tmp_path / "run/encoder.safetensors").exists()
    with pytest.warns(UserWarning, match="at epoch 3 of 4"):
        assert load_run(tmp_path / "run").epoch == 3
    run_training(tmp_path / "run", settings, reporter=Quiet())
    run_training(tmp_path / "whole", settings, reporter=Quiet())
    assert (tmp_path / "run/encoder.safetensors").read_bytes() == (tmp_path / "whole/encoder.safetensors").read_bytes()


def test_a_callback_hears_that_a_run_was_stopped(tmp_path: Path) -> None:
    watcher = Watcher()
    with pytest.raises(Interrupted):
        run_training(
            tmp_path / "run",
            parse_settings(SMALL),
            reporter=Quiet(),
            callbacks=[watcher],
            should_stop=lambda: len(watcher.heard) > 1,
        )
    assert watcher.heard[-1] == "stopped"


def test_an_exception_at_the_end_is_a_warning_and_the_run_is_finished(tmp_path: Path) -> None:
    class Late(Callback):
        def on_end(self, outcome: Outcome) -> None:
            raise ValueError("too late")

    with pytest.warns(UserWarning, match=r"Late\.on_end failed \(ValueError: too late\)"):
        run_training(tmp_path / "run", parse_settings(SMALL), reporter=Quiet(), callbacks=[Late()])
    assert load_run(tmp_path / "run").finished


@pytest.mark.parametrize(("value", "sentence"), [(3, "callbacks has 3: give"), (Callback, "callbacks has ")])
def test_what_is_no_callback_is_refused(value: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        checked_callbacks([value])


def test_a_single_callback_is_not_a_list() -> None:
    with pytest.raises(UserError, match=r"callbacks is .*: give a list of them"):
        checked_callbacks(Callback())
