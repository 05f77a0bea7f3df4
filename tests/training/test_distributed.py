"""Two real processes that train together, on the CPU through gloo; this file is also what they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.device import any_process, make_fabric, on_first
from pinoise.training.files import read_tensors
from pinoise.training.fit import seeded_model
from pinoise.training.loop import DivergedError, Interrupted, shuffled_rows, train
from pinoise.training.model import ContrastiveModel
from pinoise.training.parse import parse_settings
from pinoise.training.progress import Quiet
from pinoise.training.run import read_config, run_training
from pinoise.training.settings import Settings
from pinoise.training.state import TRAINING, seed_of
from pinoise.views import Batch

N_ROWS, BATCH, EPOCHS = 260, 32, 6
PER_EPOCH = N_ROWS // 2 // BATCH
SMALL: dict[str, Any] = {
    "encoder": {"hidden": 32, "out_features": 16},
    "head": {"hidden": 16, "out_features": 8},
    "noise": {"hidden": 32},
}
FLAGS = ["--epochs", "20", "--batch-size", "64", "--device", "cpu"]
FLAGS += [item for key in ("encoder.hidden=32", "noise.hidden=32") for item in ("--set", key)]


def problem() -> tuple[Settings, ContrastiveModel, Rows]:
    settings = parse_settings({**SMALL, "training": {"epochs": EPOCHS, "batch_size": BATCH, "device": "cpu"}})
    x = load_digits().data[:N_ROWS]
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    return settings, seeded_model(settings, standardizer, rows), rows


def torchrun(*arguments: str, processes: int = 2) -> subprocess.Popen[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.Popen(
        [*launcher, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], *, code: int = 0) -> tuple[str, str]:
    try:
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == code, errors
    return output, errors


def metrics(run: Path) -> list[str]:
    """The lines of metrics.csv without the seconds."""
    return [line.rsplit(",", 1)[0] for line in (run / "metrics.csv").read_text().splitlines()]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes that ran ``worker`` ended with."""
    folder = tmp_path_factory.mktemp("worker")
    finish(torchrun(__file__, str(folder)))
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.fixture(scope="module")
def run_of_two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A run folder that two processes filled through the command, and what they printed."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, *finish(torchrun("-m", "pinoise", "train", "--data", "digits", "--out", str(folder), *FLAGS))


def test_two_processes_do_what_averaging_their_gradients_by_hand_does(results: list[dict[str, Any]]) -> None:
    settings, model, rows = problem()
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.training.learning_rate)
    streams, losses = [], []
    for rank in range(2):
        torch.manual_seed(seed_of(settings.training.seed, TRAINING, rank))
        streams.append(torch.get_rng_state())
    for epoch in range(EPOCHS):
        shares = shuffled_rows(N_ROWS, seed=0, epoch=epoch)[: PER_EPOCH * 2 * BATCH].reshape(PER_EPOCH, 2, BATCH)
        for step in range(PER_EPOCH):
            optimizer.zero_grad()
            for rank in range(2):
                torch.set_rng_state(streams[rank])
                loss = model(Batch(rows[shares[step, rank]], shares[step, rank])).loss
                streams[rank] = torch.get_rng_state()
                (loss / 2).backward()
                losses.append(loss.item())
            optimizer.step()

    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(results[0]["whole"][name], tensor, rtol=1e-3, atol=1e-5)
    expected = np.reshape(losses, (EPOCHS, -1)).mean(axis=1)
    assert [record[2] for record in results[0]["history"]] == pytest.approx(expected, rel=1e-4)


def test_two_processes_hold_the_same_weights_and_history(results: list[dict[str, Any]]) -> None:
    first, second = results
    for name, tensor in first["whole"].items():
        assert torch.equal(tensor, second["whole"][name]), name
    assert first["history"] == second["history"]


def test_a_stop_that_one_process_wants_stops_both_and_resumes_to_the_bit_identical_result(
    results: list[dict[str, Any]],
) -> None:
    for result in results:
        assert result["stopped_after"] == 20  # asked for after step 13, by the second process
        for name, tensor in result["whole"].items():
            assert torch.equal(tensor, result["resumed"][name]), name
        assert result["resumed_history"] == result["history"]


def test_a_loss_that_breaks_in_one_process_stops_both_at_the_same_step(results: list[dict[str, Any]]) -> None:
    assert f"by step {PER_EPOCH}" in results[0]["diverged"]
    assert results[0]["diverged"] == results[1]["diverged"]


def test_what_goes_wrong_in_the_first_process_is_raised_in_both(results: list[dict[str, Any]]) -> None:
    assert [result["complaint"] for result in results] == ["rank 0 complains"] * 2
    assert [result["flags"] for result in results] == [[False, True, True]] * 2


def test_the_command_under_torchrun_fills_one_folder_and_speaks_once(run_of_two: tuple[Path, str, str]) -> None:
    run, output, errors = run_of_two
    assert [line.split(",")[:2] for line in metrics(run)[1:]] == [[str(i), str(i * 11)] for i in range(1, 21)]
    assert output.count("20 epochs, 220 steps") == 1
    assert errors.count("note: held out") == 1
    assert errors.count("epoch 20 ") == 1
    saved = torch.load(run / "checkpoints/last.ckpt", weights_only=True)
    assert len(saved["random"]) == 2
    for name, tensor in read_tensors(run / "encoder.safetensors").items():
        assert torch.equal(tensor, saved["model"][f"method.encoder.{name}"]), name


def test_a_terminated_run_of_two_resumes_to_the_bit_identical_result(
    run_of_two: tuple[Path, str, str], tmp_path: Path
) -> None:
    whole, run = run_of_two[0], tmp_path / "run"
    process = torchrun("-m", "pinoise", "train", "--data", "digits", "--out", str(run), *FLAGS)
    while process.poll() is None and not ((run / "metrics.csv").exists() and len(metrics(run)) > 1):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert errors.count("all saved; go on with") == 1, errors
    assert not (run / "encoder.safetensors").exists()

    finish(torchrun("-m", "pinoise", "train", "--resume", str(run)))
    for name in ("encoder.safetensors", "noise.safetensors"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    assert metrics(run) == metrics(whole)


def test_a_run_of_two_cannot_go_on_with_one(run_of_two: tuple[Path, str, str]) -> None:
    run = run_of_two[0]
    with pytest.raises(ValueError, match="written by 2 processes and this run has 1: resume with the same number"):
        run_training(run, read_config(run), reporter=Quiet())


def test_a_mistake_that_the_first_process_finds_ends_both(tmp_path: Path) -> None:
    data, run = tmp_path / "data.csv", tmp_path / "run"
    x = load_digits().data[:100]
    np.savetxt(data, x, delimiter=",")
    settings = parse_settings({**SMALL, "data": {"source": str(data)}, "training": {"epochs": 1, "device": "cpu"}})
    with pytest.warns(UserWarning, match="batch_size"):
        run_training(run, settings, reporter=Quiet())
    np.savetxt(data, x + 1, delimiter=",")
    _, errors = finish(torchrun("-m", "pinoise", "train", "--resume", str(run)), code=1)
    assert "has changed since" in errors
    assert "UserError" not in errors  # as a traceback would say; torchrun prints one of its own


def worker(folder: Path) -> None:
    """Train in every way that needs agreement, and leave behind what this process ended with."""
    settings, model, rows = problem()
    fabric = make_fabric(settings.training, together=True)
    fabric.launch()
    rank, result = fabric.global_rank, dict[str, Any]()

    history = train(model, rows, settings.training, fabric=fabric, reporter=Quiet())
    result |= {"whole": model.state_dict(), "history": [record[:5] for record in history]}

    _, model, _ = problem()
    steps = iter(range(1, 1000))
    try:
        train(
            model,
            rows,
            settings.training,
            fabric=fabric,
            reporter=Quiet(),
            checkpoints=folder,
            should_stop=lambda: next(steps) >= 13 and rank == 1,
        )
    except Interrupted as stop:
        result["stopped_after"] = stop.step
    _, model, _ = problem()
    history = train(model, rows, settings.training, fabric=fabric, reporter=Quiet(), resume_from=folder / "last.ckpt")
    result |= {"resumed": model.state_dict(), "resumed_history": [record[:5] for record in history]}

    _, model, _ = problem()
    everything = rows[torch.arange(N_ROWS)]
    if rank == 1:  # its last batch of the first epoch breaks, which the other process cannot see before the next
        everything[shuffled_rows(N_ROWS, seed=0, epoch=0)[(PER_EPOCH * 2 - 1) * BATCH :]] = torch.nan
    try:
        train(model, everything, settings.training, fabric=fabric, reporter=Quiet())
    except DivergedError as error:
        result["diverged"] = str(error)

    try:
        on_first(fabric, complain)
    except OSError as error:
        result["complaint"] = str(error)
    result["flags"] = [any_process(fabric, flag) for flag in (False, rank == 1, True)]
    torch.save(result, folder / f"{rank}.pt")


def complain() -> None:
    raise OSError(f"rank {os.environ['RANK']} complains")


if __name__ == "__main__":
    worker(Path(sys.argv[1]))
