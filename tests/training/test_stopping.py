"""Early stopping on the loss of rows that training does not see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.errors import UserError
from pinoise.methods import nt_xent
from pinoise.training.callbacks import Interrupted, Quiet, Record
from pinoise.training.changes import forbidden_change
from pinoise.training.config import TrainingSettings, parse_settings
from pinoise.training.loop import Machine, skipping, train
from pinoise.training.metrics import has_stalled, held_out_loss, held_out_rows
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import run_training
from pinoise.views import Batch

Problem = Callable[..., Any]
EARLY = {"training": {"epochs": 200, "patience": 3, "min_improvement": 0.02, "batch_size": 135}}


def machine() -> Machine:
    return Machine(torch.device("cpu"))


def same_but_for_seconds(first: list[Record], second: list[Record]) -> None:
    np.testing.assert_equal([record[:-1] for record in first], [record[:-1] for record in second])


def test_rows_are_held_out_once_and_trained_on_never(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, model, rows = problem(training={"patience": 5})
    held_out = held_out_rows(300, settings.training)
    kept = skipping(torch.arange(270), held_out)
    assert sorted([*kept.tolist(), *held_out.tolist()]) == list(range(300))
    assert len(held_out) == 30
    assert not torch.equal(held_out, held_out_rows(300, TrainingSettings(patience=5, seed=1)))
    assert torch.equal(held_out, held_out_rows(300, settings.training))
    assert len(held_out_rows(100_000, settings.training)) == 1024

    seen: list[int] = []
    forward = ContrastiveModel.forward

    def watched(self: ContrastiveModel, batch: Batch) -> Any:
        seen.extend(batch.rows.tolist())
        return forward(self, batch)

    monkeypatch.setattr(ContrastiveModel, "forward", watched)
    train(model, rows, settings.training, machine=machine(), reporter=Quiet())
    assert set(seen) <= set(kept.tolist())
    assert len(set(seen)) > 250


def test_patience_needs_rows_to_hold_out() -> None:
    with pytest.raises(UserError, match="patience holds out a tenth of the rows, and 19 rows are too few: give at"):
        held_out_rows(19, TrainingSettings(patience=1))


@torch.no_grad()
def test_the_held_out_loss_is_that_of_two_views_under_fixed_draws(problem: Problem) -> None:
    _, model, rows = problem(objective="fixed")
    chosen = torch.arange(40)
    batch = Batch(rows[chosen], chosen)
    torch.manual_seed(0)
    first, second = model.eval().pairing(batch)
    project = model.method.head
    expected = nt_xent(project(model.method.encoder(first.x)), project(model.method.encoder(second.x))).mean()
    model.train()
    assert held_out_loss(model, [batch]).tolist() == pytest.approx([expected.item()])
    assert held_out_loss(model, [batch]).tolist() == held_out_loss(model, [batch]).tolist()
    assert model.training


@pytest.mark.parametrize("seed", range(5))
def test_a_stall_is_what_a_slow_search_finds(seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=30).round(1).tolist()
    settings = TrainingSettings(patience=4, min_improvement=0.15)

    def stalled(n: int) -> bool:
        """Whether none of the last four losses is better than the best that counted before it."""
        records = [0]
        for i in range(1, n):
            if losses[i] < losses[records[-1]] - 0.15:
                records.append(i)
        return n > 0 and n - 1 - records[-1] >= 4

    assert [has_stalled(losses[:n], settings) for n in range(31)] == [stalled(n) for n in range(31)]
    assert not has_stalled([1.0] * 50, TrainingSettings())


def test_training_ends_early_and_a_resumed_run_ends_at_the_same_step(problem: Problem, tmp_path: Path) -> None:
    settings, whole, rows = problem(**EARLY)
    expected = train(whole, rows, settings.training, machine=machine(), reporter=Quiet())
    assert 3 < len(expected) < 200
    losses = [record.metrics["held_out"] for record in expected]
    assert has_stalled(losses, settings.training)
    assert not has_stalled(losses[:-1], settings.training)
    assert np.isfinite(expected[-1].metrics["effective_rank"])  # measured after the last epoch, whichever it is

    last, alone = tmp_path / "last.ckpt", dict[str, Any](machine=machine(), reporter=Quiet())
    # Two steps an epoch: within the last but one.
    asked = iter([*[False] * (2 * len(expected) - 3), True])
    _, first, _ = problem(**EARLY)
    with pytest.raises(Interrupted):
        train(first, rows, settings.training, checkpoints=tmp_path, should_stop=lambda: next(asked), **alone)
    _, second, _ = problem(**EARLY)
    history = train(second, rows, settings.training, checkpoints=tmp_path, resume_from=last, **alone)
    same_but_for_seconds(history, expected)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(second.state_dict()[name], tensor), name

    _, third, _ = problem(**EARLY)  # a run that has ended early has nothing left to do
    again = train(third, rows, settings.training, resume_from=last, **alone)
    same_but_for_seconds(again, expected)


def test_a_run_that_ended_early_is_finished_and_more_patience_goes_on(tmp_path: Path) -> None:
    small = {
        "data": {"source": "digits", "rows": 300},
        "encoder": {"hidden": 32, "out_features": 16},
        "training": {**EARLY["training"], "device": "cpu", "information_draws": 0},
    }
    run = tmp_path / "run"
    first = run_training(run, parse_settings(small), reporter=Quiet())
    assert len(first.history) < 200
    assert (run / "encoder.safetensors").exists()
    small["training"] = {**EARLY["training"], "device": "cpu", "information_draws": 0, "patience": 6}
    assert len(run_training(run, parse_settings(small), reporter=Quiet()).history) > len(first.history)


def test_patience_may_change_in_a_run_but_not_begin_or_end() -> None:
    def change(now: str, then: str) -> str | None:
        return forbidden_change(f'{{"training": {{"patience": {now}}}}}', f'{{"training": {{"patience": {then}}}}}')

    assert change("9", "3") is None
    assert change("9", "null") == "training.patience is 9 in config.yaml and null in"
    assert change("null", "3") == "training.patience is null in config.yaml and 3 in"
