"""What a user's program does to a module: save, copy, cast, compile, distribute. The noise must survive it.

Run as a script, ``test_module_survival.py RANK FOLDER``, this file is one process of the distributed test.
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinoise.networks import MLPEncoder
from pinoise.noise import PiNoise, Support

RANKS = 2


def noisy(noise: nn.Module, x: Tensor) -> Tensor:
    """x + ε with the same draw every time."""
    torch.manual_seed(7)
    result: Tensor = noise(x)
    return result


def make_noise(**settings: Any) -> PiNoise:
    unit = torch.tensor([0.5, 0.0, 2.0])
    return PiNoise(3, mean="learned", hidden=8, feature_scale=unit, **settings)


def along_data(covariance: str) -> PiNoise:
    """Noise along rows around a line, in three features of which one is constant."""
    t = torch.randn(60, 1, generator=torch.Generator().manual_seed(1))
    bank = torch.cat([t, torch.ones(60, 1), 2 * t], dim=1) + 0.1 * torch.randn(60, 3) * torch.tensor([1.0, 0.0, 1.0])
    return make_noise(support=Support.of(bank), covariance=covariance)


@pytest.fixture
def x() -> Tensor:
    return torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def test_state_dict_round_trip_restores_noise_and_units(x: Tensor, tmp_path: Path) -> None:
    noise, other = make_noise(initial_scale=torch.tensor([0.5, 1.0, 2.0])), PiNoise(3, mean="learned", hidden=8)
    assert not torch.equal(noisy(noise, x), noisy(other, x))
    torch.save(noise.state_dict(), tmp_path / "noise.pt")
    other.load_state_dict(torch.load(tmp_path / "noise.pt", weights_only=True))
    assert torch.equal(noisy(noise, x), noisy(other, x))


@pytest.mark.parametrize("covariance", ["mixed", "differences", "low-rank"])
def test_autocast_draws_nearly_the_same_correlated_noise(x: Tensor, covariance: str) -> None:
    noise, fresh = along_data(covariance), along_data(covariance)
    fresh.load_state_dict(noise.state_dict())  # which forgets what was found out in full precision
    exact = noisy(noise, x)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = noisy(fresh, x)
        loss = mixed.float().square().mean()
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, exact, atol=0.02, rtol=0.01)
    assert noise.support is not None
    assert fresh.support is not None
    assert torch.equal(noise.support.pairs().positions, fresh.support.pairs().positions)
    gradients = torch.autograd.grad(loss, list(fresh.parameters()))
    assert all(bool(gradient.isfinite().all()) and bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize("covariance", ["mixed", "differences", "low-rank"])
def test_correlated_noise_survives_copies_pickles_and_state_dicts(x: Tensor, covariance: str) -> None:
    noise = along_data(covariance)
    before = noisy(noise, x)
    torch.manual_seed(3)
    other = along_data(covariance)
    assert not torch.equal(noisy(other, x), before)
    other.load_state_dict(noise.state_dict())
    for same in (copy.deepcopy(noise), pickle.loads(pickle.dumps(noise)), other):
        assert torch.equal(noisy(same, x), before)
    assert noisy(noise.double(), x.double()).dtype == torch.float64


@pytest.mark.usefixtures("_fresh_compiler")
@pytest.mark.parametrize(
    "settings",
    [
        {"normalize": 0.5},
        {"distribution": "uniform", "positive": "abs"},
        {"generator": "shared"},
        {"generator": "global", "positive": "fixed-entropy"},
        {"support": Support(torch.randn(9, 3), numbers=torch.arange(9), rows=9, k=2)},
        *(
            {"support": Support(torch.randn(9, 3), numbers=torch.arange(9), rows=9, k=2), "covariance": covariance}
            for covariance in ("mixed", "differences", "low-rank")
        ),
    ],
    ids=lambda settings: "-".join([*settings, *([settings["covariance"]] if "covariance" in settings else [])]),
)
def test_compiles_without_a_graph_break_to_the_same_noise_and_gradient(x: Tensor, settings: dict[str, Any]) -> None:
    if settings.get("generator") == "shared":
        settings = settings | {"encoder": MLPEncoder((3,), hidden=8, out_features=4)}
    noise = make_noise(**settings)
    compiled: Any = torch.compile(noise, fullgraph=True, backend="aot_eager")
    parameters = list(noise.parameters())
    eager, fast = noisy(noise, x), noisy(compiled, x)
    torch.testing.assert_close(fast, eager)
    for expected, got in zip(
        torch.autograd.grad(eager.square().sum(), parameters),
        torch.autograd.grad(fast.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(got, expected)


@pytest.mark.usefixtures("_fresh_compiler")
def test_compiled_noise_in_training_keeps_the_neighbours_that_it_has() -> None:
    bank = torch.randn(9, 3)
    support = Support(bank, numbers=torch.arange(9), rows=9, k=2)
    noise = make_noise(support=support, initial_scale=0.1)
    compiled: Any = torch.compile(noise, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        noisy(compiled, bank)
    assert torch.equal(support.metric, torch.ones(3))
    assert int(support.draws) == 0
    noisy(noise, bank)  # the program itself counts, and its compiled part follows
    assert int(support.draws) == 1
    assert not torch.equal(support.metric, torch.ones(3))
    torch.testing.assert_close(noisy(compiled, bank), noisy(noise, bank))


@pytest.mark.usefixtures("_fresh_compiler")
@pytest.mark.parametrize("covariance", ["mixed", "differences", "low-rank"])
def test_compiled_noise_along_the_data_is_one_graph_before_and_after_it_follows(covariance: Any) -> None:
    data = torch.randn(40, 3)
    noise = PiNoise.along(data, covariance=covariance)
    compiled: Any = torch.compile(noise, fullgraph=True, backend="aot_eager")
    first = noisy(compiled, data[:5])
    with torch.no_grad():
        for parameter in noise.parameters():
            parameter.copy_(torch.tensor([3.0, 0.0, -3.0]).reshape(parameter.shape))
    assert noise.support is not None
    before = noise.support.pairs().positions
    noise.follow()
    after = noisy(compiled, data[:5])
    assert not torch.equal(noise.support.pairs().positions, before)
    torch.testing.assert_close(after, noisy(noise.eval(), data[:5]))
    assert not torch.equal(after, first)


def run_rank(rank: int, folder: Path) -> None:
    """Save ψ's gradient on this process's own batch, alone and under DDP."""
    torch.set_num_threads(1)
    store = (folder / "store").as_uri()
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=RANKS)
    found: dict[str, dict[str, list[Tensor | None]]] = {}
    for covariance in ("diagonal", "mixed"):
        torch.manual_seed(0)
        noise = make_noise() if covariance == "diagonal" else along_data(covariance)
        alone = copy.deepcopy(noise)
        together = nn.parallel.DistributedDataParallel(noise)
        torch.manual_seed(100 + rank)
        x = torch.randn(5, 3)
        gradients = found[covariance] = {}
        for name, module in (("alone", alone), ("together", together)):
            loss: Any = noisy(module, x).square().mean()
            loss.backward()
            gradients[name] = [parameter.grad for parameter in module.parameters()]
    torch.save(found, folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.processes
def test_two_processes_average_the_gradient_of_psi(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, __file__, str(rank), str(tmp_path)]) for rank in range(RANKS)]
    try:
        assert [process.wait(timeout=120) for process in processes] == [0] * RANKS
    finally:
        for process in processes:
            process.kill()
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(RANKS))
    assert set(first) == {"diagonal", "mixed"}
    for covariance in first:
        one, other = first[covariance], second[covariance]
        for a, b, average_a, average_b in zip(
            one["alone"], other["alone"], one["together"], other["together"], strict=True
        ):
            assert not torch.equal(a, b)
            assert torch.equal(average_a, average_b)
            torch.testing.assert_close(average_a, (a + b) / 2)


if __name__ == "__main__":
    run_rank(int(sys.argv[1]), Path(sys.argv[2]))
