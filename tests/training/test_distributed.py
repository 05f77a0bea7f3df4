"""Two real processes that train together, on the CPU through gloo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tests.training.pool import pool_of_two
from tests.training.stops import assert_same_tensors
from torch import Tensor

from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.modes import TRAINING, Randomness, seed_of
from pinoise.noise import support
from pinoise.training.build import seeded_model
from pinoise.training.callbacks import Interrupted, Quiet, Record
from pinoise.training.config import Settings, TrainingSettings, parse_settings
from pinoise.training.loop import make_optimizer, shuffled_rows, train
from pinoise.training.metrics import DivergedError
from pinoise.training.objectives import ContrastiveModel, Look
from pinoise.training.run import machine_of
from pinoise.training.together import Member
from pinoise.views import Batch

pytestmark = pytest.mark.processes

N_ROWS, BATCH, EPOCHS = 260, 64, 6
BANK = 200  # fewer than the rows, so that neighbours are searched for in every batch
PER_EPOCH = N_ROWS // BATCH
NOISE_RATE = 0.03  # so that σ, and with it who is near to whom, moves in a few steps
SAVED_AT = 13  # a step in the middle of an epoch
REFRESH = 5  # steps between looks at the neighbours
SMALL: dict[str, Any] = {
    "encoder": {"hidden": 32, "out_features": 16},
    "head": {"hidden": 16, "out_features": 8},
    "noise": {"generator": {"hidden": 32}},
}
# Those that remember more than weights: a queue, a bank, a centre, networks that follow, statistics of batches.
WITH_MEMORY = ("moco", "byol", "dino")
METHODS: dict[str, dict[str, Any]] = {
    "simclr": {"name": "simclr"},
    "moco": {"name": "moco", "queue": 150},  # no multiple of the 128 keys of a step
    "byol": {"name": "byol"},
    "dino": {"name": "dino", "prototypes": 16},
}
UNDRAWN = "without draws"  # but with a queue and a network that follows
METHODS[UNDRAWN] = METHODS["moco"]


def problem(*, bank: int = 4096, method: str = "simclr") -> tuple[Settings, ContrastiveModel, Rows]:
    training = {"epochs": EPOCHS, "batch_size": BATCH, "device": "cpu", "noise_learning_rate": NOISE_RATE}
    views = {"noise": "none", "augmentations": ["identity"]} if method == UNDRAWN else {}
    settings = parse_settings({**SMALL, "method": METHODS[method], "training": training, "views": views})
    x = load_digits().data[:N_ROWS]
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    support.SUPPORT_ROWS, rows_before = bank, support.SUPPORT_ROWS
    try:
        return settings, seeded_model(settings, standardizer, rows), rows
    finally:
        support.SUPPORT_ROWS = rows_before


def undrawn() -> TrainingSettings:
    training = problem(method=UNDRAWN)[0].training
    return training.model_copy(update={"checkpoint_every": SAVED_AT, "information_draws": 0})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worker")


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, Any]:
    """What one process ends with where nothing is drawn. Its checkpoint in the middle is kept."""
    _, model, rows = problem(method=UNDRAWN)
    history = train(model, rows, undrawn(), machine=machine_of(undrawn()), reporter=Quiet(), checkpoints=folder)
    (folder / "previous.ckpt").replace(folder / "one")
    return ended(model, history)


@pytest.fixture(scope="module")
def results(folder: Path, alone: dict[str, Any]) -> list[dict[str, Any]]:
    """What each of two processes that ran ``worker`` ended with."""
    with pool_of_two() as everywhere:
        return everywhere(worker, folder)


@pytest.mark.parametrize("bank", [4096, BANK])
def test_two_processes_do_what_one_does_with_their_joint_batches(
    results: list[dict[str, Any]], bank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "REFRESH_EVERY", 2 * REFRESH)  # one process here draws for two
    settings, model, rows = problem(bank=bank)
    assert model.noise is not None
    groups: list[dict[str, Any]] = [
        {"params": model.method.parameters()},
        {"params": model.noise.parameters(), "lr": settings.training.noise_learning_rate},
    ]
    optimizer = torch.optim.Adam(groups, lr=settings.training.learning_rate)
    losses: list[float] = []
    sources = [Randomness(seed_of(settings.training.seed, TRAINING, rank)) for rank in range(2)]
    for epoch in range(EPOCHS):
        order = shuffled_rows(N_ROWS, seed=0, epoch=epoch)
        for batch in order[: PER_EPOCH * BATCH].split(BATCH):
            halves = [
                model.pairing(Batch(rows[share], share, random=source))
                for share, source in zip(batch.chunk(2), sources, strict=True)
            ]
            views = [join(sides) for sides in zip(*halves, strict=True)]
            loss = model.objective(Look(model.method(views), views[:1]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    found = results[0]["whole" if bank > BANK else "of a sample"]
    for name, tensor in model.state_dict().items():
        expected = tensor // 2 if name.endswith("support.draws") else tensor  # of one process
        torch.testing.assert_close(found["weights"][name], expected, rtol=1e-3, atol=1e-4)
    expected = np.reshape(losses, (EPOCHS, -1)).mean(axis=1)
    assert [record.loss for record in found["history"]] == pytest.approx(expected, rel=1e-4)
    assert not torch.equal(found["weights"]["pairing.noise.noise.support.metric"], found["began"])


def join(halves: Sequence[Batch]) -> Batch:
    """One view of the joint batch. σ is the same for every sample."""
    x, rows = (torch.cat(parts) for parts in zip(*((half.x, half.rows) for half in halves), strict=True))
    return Batch(x, rows, noise=halves[0].noise)


@pytest.mark.parametrize("run", ["whole", "of a sample", "resumed"])
def test_two_processes_hold_the_same_weights_neighbours_and_history(results: list[dict[str, Any]], run: str) -> None:
    first, second = (result[run] for result in results)
    assert "pairing.noise.noise.support.metric" in first["weights"]
    assert_same_tensors(first["weights"], second["weights"])
    np.testing.assert_equal(first["history"], second["history"])


def test_a_stop_that_one_process_wants_stops_both_and_resumes_to_the_bit_identical_result(
    results: list[dict[str, Any]],
) -> None:
    for result in results:
        assert result["stopped_after"] == 20  # asked for after step 13, by the second process
        assert_same_tensors(result["whole"]["weights"], result["resumed"]["weights"])
        np.testing.assert_equal(result["resumed"]["history"], result["whole"]["history"])


@pytest.mark.parametrize("method", WITH_MEMORY)
def test_what_a_method_remembers_is_the_same_in_both_and_after_a_resume(
    results: list[dict[str, Any]], method: str
) -> None:
    whole, resumed = results[0][method]
    other, _ = results[1][method]
    began = problem(method=method)[1].state_dict()
    remembered = {"moco": "queue", "byol": "head.1.running_mean", "dino": "centre"}
    name = f"method.{remembered[method]}"
    assert not torch.equal(whole["weights"][name], began[name])
    assert_same_tensors(whole["weights"], other["weights"])
    assert_same_tensors(whole["weights"], resumed["weights"])
    np.testing.assert_equal(resumed["history"], whole["history"])


def test_statistics_of_the_own_process_normalise_every_share_by_itself_and_are_averaged(
    results: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "REFRESH_EVERY", 2 * REFRESH)  # one process here draws for two
    settings, model, rows = problem(method="byol")
    optimizer = make_optimizer(model, settings.training, torch.device("cpu"))
    sources = [Randomness(seed_of(settings.training.seed, TRAINING, rank)) for rank in range(2)]
    statistics = {name: tensor for name, tensor in model.named_buffers() if "running_" in name}
    orders = [shuffled_rows(N_ROWS, seed=0, epoch=epoch)[: PER_EPOCH * BATCH] for epoch in range(EPOCHS)]
    for step, batch in enumerate(torch.cat(orders).split(BATCH)):
        before = {name: tensor.clone() for name, tensor in statistics.items()}
        after: list[dict[str, Tensor]] = []
        optimizer.zero_grad()
        for share, source in zip(batch.chunk(2), sources, strict=True):
            for name, tensor in statistics.items():
                tensor.copy_(before[name])
            (model(Batch(rows[share], share, random=source)).loss / 2).backward()
            after.append({name: tensor.clone() for name, tensor in statistics.items()})
        optimizer.step()
        model.after_step(step, EPOCHS * PER_EPOCH)
        for name, tensor in statistics.items():
            tensor.copy_((after[0][name] + after[1][name]) / 2)

    for found in (result["byol"][0]["weights"] for result in results):
        for name, tensor in {**dict(model.named_parameters()), **statistics}.items():
            torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=1e-4)


def test_a_loss_that_breaks_in_one_process_stops_both_at_the_same_step(results: list[dict[str, Any]]) -> None:
    assert f"by step {PER_EPOCH}" in results[0]["diverged"]
    assert results[0]["diverged"] == results[1]["diverged"]


def test_what_goes_wrong_in_the_first_process_is_raised_in_both(results: list[dict[str, Any]]) -> None:
    assert [result["complaint"] for result in results] == ["rank 0 complains"] * 2
    assert [result["flags"] for result in results] == [[False, True, True]] * 2
    assert [result["means"] for result in results] == [[1.5, 20.0]] * 2


def test_where_nothing_is_drawn_one_process_goes_on_to_the_weights_of_two(
    results: list[dict[str, Any]], alone: dict[str, Any], folder: Path
) -> None:
    _, model, rows = problem(method=UNDRAWN)
    history = train(model, rows, undrawn(), machine=machine_of(undrawn()), reporter=Quiet(), resume_from=folder / "two")
    for found in (ended(model, history), results[0]["undrawn"], results[0]["from one"]):
        for name, tensor in alone["weights"].items():
            torch.testing.assert_close(found["weights"][name], tensor, rtol=1e-3, atol=1e-4)
        for mine, expected in zip(found["history"], alone["history"], strict=True):
            assert mine[:2] == expected[:2]
            assert mine.loss == pytest.approx(expected.loss, rel=1e-4)


def worker(folder: Path) -> dict[str, Any]:
    """Train in every way that needs agreement, and return what this process ended with."""
    machine, result = Member(torch.device("cpu")), dict[str, Any]()
    support.REFRESH_EVERY = REFRESH

    def trained(settings: TrainingSettings, model: ContrastiveModel, rows: Rows, **more: Any) -> dict[str, Any]:
        return ended(model, train(model, rows, settings, machine=machine, reporter=Quiet(), **more))

    for name, bank in {"whole": 4096, "of a sample": BANK}.items():
        settings, model, rows = problem(bank=bank)
        assert model.noise is not None
        assert model.noise.support is not None
        model.noise.support.refresh(model.noise.typical_scale(model.noise.support.bank))
        began = model.noise.support.metric.clone()
        result[name] = {**trained(settings.training, model, rows), "began": began}

    steps = iter(range(1, 1000))
    settings, model, rows = problem()
    stop = {"checkpoints": folder, "should_stop": lambda: next(steps) >= 13 and machine.rank == 1}
    try:
        trained(settings.training, model, rows, **stop)
    except Interrupted as interrupted:
        result["stopped_after"] = interrupted.step
    result["resumed"] = trained(settings.training, problem()[1], rows, resume_from=folder / "last.ckpt")

    for method in WITH_MEMORY:
        settings, model, rows = problem(method=method)
        training = settings.training.model_copy(update={"checkpoint_every": SAVED_AT, "information_draws": 0})
        machine.first((folder / method).mkdir)
        whole = trained(training, model, rows, checkpoints=folder / method)
        middle = folder / method / "previous.ckpt"
        result[method] = whole, trained(training, problem(method=method)[1], rows, resume_from=middle)

    machine.first((folder / "undrawn").mkdir)
    model, again = problem(method=UNDRAWN)[1], problem(method=UNDRAWN)[1]
    result["undrawn"] = trained(undrawn(), model, rows, checkpoints=folder / "undrawn")
    machine.first(lambda: (folder / "undrawn" / "previous.ckpt").replace(folder / "two"))
    result["from one"] = trained(undrawn(), again, rows, resume_from=folder / "one")

    everything = rows[torch.arange(N_ROWS)]
    if machine.rank == 1:  # its last batch of the first epoch breaks, which the other cannot see before the next
        everything[shuffled_rows(N_ROWS, seed=0, epoch=0)[PER_EPOCH * BATCH - BATCH // 2 :]] = torch.nan
    try:
        trained(settings.training, problem()[1], everything)
    except DivergedError as error:
        result["diverged"] = str(error)

    def complain() -> None:
        raise OSError(f"rank {machine.rank} complains")

    try:
        machine.first(complain)
    except OSError as error:
        result["complaint"] = str(error)
    result["flags"] = [machine.any(flag) for flag in (False, machine.rank == 1, True)]
    result["means"] = machine.mean(torch.tensor([machine.rank + 1.0, 20.0]))
    return result


def ended(model: ContrastiveModel, history: list[Record]) -> dict[str, Any]:
    """What a training ended with; seconds differ from process to process."""
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return {"weights": weights, "history": [record._replace(seconds=0.0) for record in history]}
