from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.noise import Support
from pinoise.training.callbacks import Interrupted, Quiet, Record
from pinoise.training.config import TrainingSettings
from pinoise.training.loop import Machine, make_optimizer, plan_epoch, shuffled_rows, train
from pinoise.training.metrics import COSTLY_METRICS, METRICS, NOISE_METRICS, DivergedError
from pinoise.training.objectives import ContrastiveModel
from pinoise.views import Batch

Problem = Callable[..., Any]


def machine() -> Machine:
    return Machine(torch.device("cpu"))


class Watcher(Quiet):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.started: list[tuple[int, int]] = []
        self.steps: list[int] = []
        self.records: list[Record] = []

    def start(self, *, total_steps: int, done_steps: int) -> None:
        self.started.append((total_steps, done_steps))

    def step(self, step: int) -> None:
        self.steps.append(step)

    def epoch(self, record: Record) -> None:
        self.records.append(record)


def weights(model: ContrastiveModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


def assert_same_history(first: list[Record], second: list[Record]) -> None:
    """In all but the seconds; numbers that were not measured are nan in both."""
    np.testing.assert_equal([record[:-1] for record in first], [record[:-1] for record in second])


def stopped(
    model: ContrastiveModel, rows: Any, settings: TrainingSettings, folder: Path, *, at: int, on: Machine | None = None
) -> Path:
    """Train until a step, and return the checkpoint."""
    seen, where = Watcher(), dict[str, Any](machine=on or machine(), checkpoints=folder)
    with pytest.raises(Interrupted, match=f"step {at}"):
        train(model, rows, settings, reporter=seen, should_stop=lambda: len(seen.steps) >= at - 1, **where)
    return folder / "last.ckpt"


@pytest.mark.parametrize("objective", ["supported", "paper", "fixed", "adversarial"])
def test_the_loop_does_what_a_plain_pytorch_loop_does(
    problem: Problem, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.noise.support.REFRESH_EVERY", 3)
    settings, model, rows = problem(objective=objective)
    history = train(model, rows, settings.training, machine=machine(), reporter=Quiet())

    _, twin, _ = problem(objective=objective)
    noise = list(twin.noise.parameters())
    rates = [{"params": twin.method.parameters()}, {"params": noise, "lr": 1e-2 if objective == "supported" else 1e-3}]
    optimizer = torch.optim.Adam(rates if noise else rates[:1], lr=1e-3, fused=False)
    losses: list[float] = []
    contrasts: list[float] = []
    torch.manual_seed(int(np.random.SeedSequence([0, 1, 0]).generate_state(1)[0]))
    for epoch in range(2):
        order = np.random.default_rng([0, epoch]).permutation(300)
        for start in range(0, 256, 64):
            chosen = torch.from_numpy(order[start : start + 64])
            if twin.noise.support is not None and len(losses) % 3 == 0:
                twin.noise.support.refresh(twin.noise.scale(rows[chosen])[0].detach())  # all samples have the same σ
            loss, each = twin(Batch(rows[chosen], chosen))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            contrasts.append(each.mean().item())

    for name, tensor in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)
    assert [record.loss for record in history] == pytest.approx([np.mean(losses[:4]), np.mean(losses[4:])], rel=1e-5)
    found = [record.metrics["contrast"] for record in history]
    assert found == pytest.approx([np.mean(contrasts[:4]), np.mean(contrasts[4:])], rel=1e-5)


def test_both_encoder_and_generator_move(problem: Problem) -> None:
    settings, model, rows = problem()
    before = weights(model)
    train(model, rows, settings.training, machine=machine(), reporter=Quiet())
    moved = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert any(name.startswith("method.encoder") for name in moved)
    assert any(name.startswith("pairing.noise") for name in moved)


@pytest.mark.parametrize("stop_at", [1, 3, 4, 6, 7])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"objective": "paper", "method": "clae"},
        {"objective": "information"},
        {"views": {"augmentations": ["scarf", "neighbours"]}},
    ],
)
def test_a_run_stopped_anywhere_and_resumed_ends_in_the_same_weights(
    problem: Problem, tmp_path: Path, stop_at: int, changes: dict[str, Any]
) -> None:
    settings, whole, rows = problem(**changes)
    expected = train(whole, rows, settings.training, machine=machine(), reporter=Quiet())

    _, first, _ = problem(**changes)
    last = stopped(first, rows, settings.training, tmp_path, at=stop_at)
    torch.manual_seed(12345)  # what happens in between must not matter
    _, second, _ = problem(**changes)
    after = Watcher()
    history = train(second, rows, settings.training, machine=machine(), reporter=after, resume_from=last)

    assert_equal(weights(second), weights(whole))
    assert after.started == [(8, stop_at)]
    assert_same_history(history, expected)


def metrics_seen(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The metric of neighbours after every look at whether σ has moved."""
    seen: list[Tensor] = []
    refresh = Support.refresh

    def remember(support: Support, scale: Tensor) -> None:
        refresh(support, scale)
        seen.append(support.metric.clone())

    monkeypatch.setattr(Support, "refresh", remember)
    return seen


@pytest.mark.parametrize(("bank", "table"), [(4096, 4096), (70, 4096), (70, 0)], ids=["all", "table", "search"])
def test_neighbours_that_change_between_a_checkpoint_and_the_end_are_the_same_after_a_resume(
    problem: Problem, tmp_path: Path, bank: int, table: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.noise.support.REFRESH_EVERY", 3)
    monkeypatch.setattr("pinoise.noise.support.SUPPORT_ROWS", bank)
    monkeypatch.setattr("pinoise.noise.support.TABLE_ROWS", table)
    changes = {"training": {"noise_learning_rate": 0.2}}
    seen = metrics_seen(monkeypatch)
    settings, whole, rows = problem(**changes)
    expected = train(whole, rows, settings.training, machine=machine(), reporter=Quiet())
    in_one_go = list(seen)
    assert len(in_one_go) == 3  # before steps 0, 3 and 6
    assert not torch.equal(in_one_go[0], in_one_go[1])
    assert not torch.equal(in_one_go[1], in_one_go[2])
    assert len(whole.noise.support.bank) == min(bank, 300)

    seen.clear()
    _, first, _ = problem(**changes)
    last = stopped(first, rows, settings.training, tmp_path, at=5)
    _, second, _ = problem(**changes)
    history = train(second, rows, settings.training, machine=machine(), reporter=Quiet(), resume_from=last)
    assert_equal(weights(second), weights(whole))
    assert_same_history(history, expected)
    assert all(torch.equal(a, b) for a, b in zip(seen, in_one_go, strict=True))


def half_precision() -> Machine:
    """16-mixed on the CPU, with a scale that soon differs from where it began and is no power of two."""
    machine = Machine(torch.device("cpu"), "16-mixed")
    machine.scaler = torch.amp.GradScaler("cpu", init_scale=3.0, growth_factor=1.7, growth_interval=2)
    return machine


def bfloat_precision() -> Machine:
    return Machine(torch.device("cpu"), "bf16-mixed")


@pytest.fixture
def _plain_kernels() -> Iterator[None]:
    """Do without oneDNN: some virtual machines announce bfloat16 instructions that they do not have."""
    with torch.backends.mkldnn.flags(enabled=False):
        yield


@pytest.mark.usefixtures("_plain_kernels")
@pytest.mark.parametrize("lowered", [bfloat_precision, half_precision])
def test_a_resumed_run_of_mixed_precision_ends_in_the_same_weights(
    problem: Problem, tmp_path: Path, lowered: Callable[[], Machine]
) -> None:
    settings, whole, rows = problem()
    train(whole, rows, settings.training, machine=lowered(), reporter=Quiet())
    _, first, _ = problem()
    last = stopped(first, rows, settings.training, tmp_path, at=5, on=lowered())
    _, second, _ = problem()
    train(second, rows, settings.training, machine=lowered(), reporter=Quiet(), resume_from=last)
    assert_equal(weights(second), weights(whole))


def test_saving_checkpoints_does_not_change_the_result(problem: Problem, tmp_path: Path) -> None:
    settings, plain, rows = problem()
    train(plain, rows, settings.training, machine=machine(), reporter=Quiet())
    settings, saving, rows = problem(training={"checkpoint_every": 1})
    train(saving, rows, settings.training, machine=machine(), reporter=Quiet(), checkpoints=tmp_path)
    assert_equal(weights(plain), weights(saving))
    assert (tmp_path / "last.ckpt").exists()
    assert (tmp_path / "previous.ckpt").exists()


def test_a_resumed_run_can_be_given_more_epochs(problem: Problem, tmp_path: Path) -> None:
    settings, whole, rows = problem(training={"epochs": 4})
    train(whole, rows, settings.training, machine=machine(), reporter=Quiet())
    short, first, _ = problem(training={"epochs": 2})
    train(first, rows, short.training, machine=machine(), reporter=Quiet(), checkpoints=tmp_path)
    _, second, _ = problem(training={"epochs": 4})
    train(second, rows, settings.training, machine=machine(), reporter=Quiet(), resume_from=tmp_path / "last.ckpt")
    assert_equal(weights(second), weights(whole))


def test_the_reporter_hears_every_step_and_epoch(problem: Problem) -> None:
    settings, model, rows = problem()
    watcher = Watcher()
    history = train(model, rows, settings.training, machine=machine(), reporter=watcher)
    assert watcher.started == [(8, 0)]
    assert watcher.steps == list(range(1, 9))
    assert watcher.records == history
    assert [record.epoch for record in history] == [1, 2]
    assert history[0].seconds <= history[1].seconds


def test_costly_metrics_are_measured_after_fifty_steps_each_and_at_the_end(problem: Problem) -> None:
    settings, model, rows = problem(training={"epochs": 160, "batch_size": 300})  # of one step each
    history = train(model, rows, settings.training, machine=machine(), reporter=Quiet())
    for record in history:
        assert tuple(record.metrics) == METRICS
        assert all(np.isfinite(record.metrics[name]) for name in ("contrast", *NOISE_METRICS))
        measured = record.epoch in (50, 100, 150, 160)
        assert all(np.isfinite(record.metrics[name]) == measured for name in COSTLY_METRICS)


@pytest.mark.parametrize("changes", [{}, {"objective": "paper"}, {"views": {"noise": "scarf"}}])
def test_what_is_measured_on_the_way_does_not_change_the_result(problem: Problem, changes: dict[str, Any]) -> None:
    ended = []
    for draws in (0, 7):
        settings, model, rows = problem(**changes, training={"information_draws": draws})
        history = train(model, rows, settings.training, machine=machine(), reporter=Quiet())
        assert np.isfinite(history[-1].metrics["information"]) == (draws > 0)
        ended.append(weights(model))
    assert_equal(*ended)


def test_the_learning_rate_of_the_noise_can_differ(problem: Problem) -> None:
    _, model, _ = problem()
    settings = TrainingSettings(learning_rate=0.5, noise_learning_rate=0.25)
    optimizer = make_optimizer(model, settings, torch.device("cpu"))
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert model.noise is not None
    assert {rates[id(p)] for p in model.noise.parameters()} == {0.25}
    assert {rates[id(p)] for p in model.method.parameters()} == {0.5}
    assert len(rates) == len(list(model.parameters()))


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({}, 0.5),  # one number per feature
        ({"objective": "paper"}, 0.05),
        ({"objective": "paper", "noise": {"generator": "global"}}, 0.5),
        ({"noise": {"generator": "shared"}}, 0.05),
    ],
)
def test_numbers_of_their_own_learn_ten_times_as_fast_as_networks(
    problem: Problem, changes: dict[str, Any], rate: float
) -> None:
    _, model, _ = problem(**changes)
    optimizer = make_optimizer(model, TrainingSettings(learning_rate=0.05), torch.device("cpu"))
    theta, psi = optimizer.param_groups
    assert {id(p) for p in psi["params"]} == {id(p) for p in model.noise.parameters()}
    assert (theta["lr"], psi["lr"]) == (0.05, pytest.approx(rate))


def test_a_shared_generator_gives_the_encoder_to_the_optimiser_once(problem: Problem) -> None:
    settings, model, _ = problem(noise={"generator": "shared"})
    optimizer = make_optimizer(model, settings.training, torch.device("cpu"))
    listed = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert len(listed) == len(set(listed))
    assert {id(p) for p in model.method.parameters()} <= set(listed)


def test_a_loss_that_is_no_number_stops_with_a_named_cause(problem: Problem, tmp_path: Path) -> None:
    settings, model, rows = problem(training={"learning_rate": 1e30})
    with pytest.raises(
        DivergedError, match=r"the loss became nan or infinite by step \d+.*learning rate \(now 1e\+30\)"
    ):
        train(model, rows, settings.training, machine=machine(), reporter=Quiet(), checkpoints=tmp_path)
    assert not (tmp_path / "last.ckpt").exists()


def test_a_gradient_whose_square_is_no_number_stops_before_a_checkpoint_that_nothing_could_resume_from(
    problem: Problem, tmp_path: Path
) -> None:
    settings, model, rows = problem(method={"name": "simclr", "temperature": 1e-26}, training={"checkpoint_every": 2})
    with pytest.raises(DivergedError, match="the gradient became nan or infinite by step 2: lower the learning rate"):
        train(model, rows, settings.training, machine=machine(), reporter=Quiet(), checkpoints=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("breaks_at", [4, 8])
def test_weights_that_the_last_update_broke_are_not_saved(
    problem: Problem, tmp_path: Path, breaks_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, model, rows = problem(training={"checkpoint_every": 4})

    def after_step(step: int, steps: int) -> None:
        assert steps == 8
        if step + 1 == breaks_at:
            next(model.method.parameters()).data.view(-1)[0] = torch.nan

    monkeypatch.setattr(model, "after_step", after_step)
    watcher = Watcher()
    with pytest.raises(DivergedError, match=f"by step {breaks_at}"):
        train(model, rows, settings.training, machine=machine(), reporter=watcher, checkpoints=tmp_path)
    assert (tmp_path / "last.ckpt").exists() == (breaks_at == 8)
    assert len(watcher.records) == breaks_at // 4 - 1
    if breaks_at == 8:
        assert torch.load(tmp_path / "last.ckpt", weights_only=True)["step"] == 4


def test_weights_that_the_last_update_broke_are_not_returned(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, model, rows = problem(training={"epochs": 1, "batch_size": 300})
    monkeypatch.setattr(model, "after_step", lambda *_: next(model.method.parameters()).data.fill_(torch.inf))
    with pytest.raises(DivergedError, match="by step 1"):
        train(model, rows, settings.training, machine=machine(), reporter=Quiet())


def test_frozen_weights_are_not_given_to_the_optimiser(problem: Problem) -> None:
    settings, model, _ = problem()
    frozen = next(model.method.parameters()).requires_grad_(False)
    optimizer = make_optimizer(model, settings.training, torch.device("cpu"))
    listed = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert listed == {id(p) for p in model.parameters()} - {id(frozen)}


@pytest.mark.parametrize(("rows", "batch_size"), [(1000, 96), (1001, 96), (97, 96), (95, 96), (31, 1000)])
def test_processes_share_the_batches_of_one_process(rows: int, batch_size: int) -> None:
    plans = [plan_epoch(rows, batch_size, processes) for processes in (1, 2, 3, 4)]
    for processes, (steps, share) in enumerate(plans, start=1):
        assert steps == plans[0][0]
        assert share == min(batch_size, rows) // processes


def test_a_batch_that_processes_cannot_share_equally_is_refused() -> None:
    with pytest.raises(UserError, match="is 256, which 3 processes cannot share equally: use 255 or 258"):
        plan_epoch(1000, 256, 3)
    with pytest.raises(UserError, match="3 rows for 2 process"):
        plan_epoch(3, 2, 2)
    with pytest.raises(UserError, match="2 rows in a batch for 2 process"):
        plan_epoch(30, 2, 2)


def test_an_epoch_visits_every_row_once_in_an_order_of_its_own() -> None:
    orders = [shuffled_rows(50, seed=1, epoch=epoch) for epoch in range(2)]
    for order in orders:
        assert sorted(order.tolist()) == list(range(50))
    assert not torch.equal(*orders)
    assert torch.equal(orders[0], shuffled_rows(50, seed=1, epoch=0))
    assert not torch.equal(orders[0], shuffled_rows(50, seed=2, epoch=0))
