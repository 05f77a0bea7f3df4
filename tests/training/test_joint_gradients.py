"""The gradient of two processes against that of one process on their joint batch, for θ and ψ of every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from sklearn.datasets import load_digits
from tests.training.pool import PROCESSES, Everywhere, pool_of_two
from torch import Tensor, distributed, nn

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.methods import simcl
from pinoise.modes import Randomness
from pinoise.noise import Noise
from pinoise.training.build import seeded_model
from pinoise.training.config import Settings, merge, parse_settings
from pinoise.training.objectives import ContrastiveModel, Look
from pinoise.training.together import Member
from pinoise.views import Batch

pytestmark = pytest.mark.processes

ROWS, SHARE = 60, 7
SMALL: dict[str, Any] = {
    "encoder": {"hidden": 16, "out_features": 8},
    "head": {"hidden": 8, "out_features": 6},
    "noise": {"generator": {"name": "mlp", "hidden": 8}},  # σ of every sample, so that ψ has much to learn
    "training": {"batch_size": SHARE * PROCESSES, "device": "cpu"},
}
METHODS: dict[str, Any] = {
    "simclr": {"method": "simclr"},
    "moco": {"method": {"name": "moco", "queue": 40}},
    "byol": {"method": "byol"},
    "simsiam": {"method": "simsiam"},
    "dino": {"method": {"name": "dino", "prototypes": 5}},
    "clae": {"method": {"name": "clae", "weight": 0.7}},
    "clae against the partner": {"method": {"name": "clae", "against": "partner"}},
    "simcl": {"method": "simcl"},
}
OTHERS: dict[str, Any] = {
    "the paper's penalty": {"objective": {"name": "paper", "penalty": 2.0}},
    "Algorithm 2, in which some samples draw noise": {
        "views": {"pairing": "sampled", "augmentations": ["gaussian"]},
        "objective": {"name": "supported", "weight": 3.0},
        "noise": {"neighbours": 0},
    },
    "Algorithm 2 with the paper's penalty": {
        "views": {"pairing": "sampled", "augmentations": ["gaussian"]},
        "objective": {"name": "paper", "penalty": 2.0},
    },
    "information, with further looks": {"objective": {"name": "information", "draws": 2}},
    "noise against the encoder": {"objective": "adversarial"},
    "features shared with the noise": {"noise": {"generator": {"name": "shared"}}},
}


def model_of(changes: dict[str, Any]) -> tuple[ContrastiveModel, Tensor]:
    """A model and standardised rows, in double precision."""
    x = load_digits().data[:ROWS]
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    settings: Settings = parse_settings(merge(SMALL, changes))
    model = seeded_model(settings, standardizer, rows).double()
    for part in list(model.modules()):  # every process would normalise by its own share of the batch
        for name, child in part.named_children():
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                setattr(part, name, nn.Identity())
    return model, rows[torch.arange(ROWS)].double()


def share_of(x: Tensor, rank: int) -> Batch:
    rows = torch.randperm(ROWS, generator=torch.Generator().manual_seed(3))[rank * SHARE :][:SHARE]
    return Batch(x[rows], rows, random=Randomness(100 + rank))


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def alike(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-9, atol=1e-10, msg=lambda text: f"{name}: {text}")  # noqa: B023


def in_a_process(changes: dict[str, Any]) -> dict[str, dict[str, Tensor]]:
    """What one of the two processes ends with after a step: gradients and what the method remembers."""
    model, x = model_of(changes)
    wrapped = Member(torch.device("cpu")).wrap(model)
    wrapped(share_of(x, distributed.get_rank())).loss.backward()
    model.after_step(0, 10)
    return {"gradients": gradients(model), "buffers": dict(model.method.named_buffers())}


def on_the_joint_batch(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Tensor]]:
    """The same of this process alone. Every half of the batch draws what its own process drew."""
    model, x = model_of(changes)
    halves = [share_of(x, rank) for rank in range(PROCESSES)]
    sources = [half.random for half in halves if half.random is not None]

    def draws(halved: Tensor, draw: Tensor, *, strength: float) -> Tensor:
        both = [torch.randn(2 * SHARE, *draw.shape[1:], generator=s.on(draw.device), dtype=draw.dtype) for s in sources]
        joint = torch.cat([half[view * SHARE :][:SHARE] for view in range(2) for half in both])
        return halved + strength * nn.functional.normalize(joint, dim=1)

    monkeypatch.setattr(simcl, "perturb", draws)
    looks = []
    for theta in [True] + [False] * model.objective.further_looks:
        views = [join(sides) for sides in zip(*(views_of(model, half) for half in halves), strict=True)]
        views = [view.with_gradient(model.objective.psi if theta else 1.0) for view in views]
        looks.append(Look(model._losses(views, theta=theta), views))
    model.objective(looks[0], looks[1:]).backward()
    model.after_step(0, 10)
    return {"gradients": gradients(model), "buffers": dict(model.method.named_buffers())}


def views_of(model: ContrastiveModel, half: Batch) -> Sequence[Batch]:
    views: Sequence[Batch] = model.pairing(half)
    return views


def join(halves: Sequence[Batch]) -> Batch:
    noises = [half.noise for half in halves if half.noise is not None]
    noise = Noise(*map(torch.cat, zip(*noises, strict=True))) if noises else None
    drew = [half.drew for half in halves if half.drew is not None]
    x, rows = (torch.cat(parts) for parts in zip(*((half.x, half.rows) for half in halves), strict=True))
    return Batch(x, rows, noise=noise, drew=torch.cat(drew) if drew else None, random=Randomness(0))


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Everywhere]:
    with pool_of_two() as call:
        yield call


@pytest.mark.parametrize("case", [*METHODS, *OTHERS])
def test_two_processes_have_the_gradient_of_one_on_their_joint_batch(
    everywhere: Everywhere, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {**METHODS, **OTHERS}[case]
    found = everywhere(in_a_process, changes)
    expected = on_the_joint_batch(changes, monkeypatch)
    of_psi = [name for name in expected["gradients"] if name.startswith("pairing.")]
    assert of_psi
    assert any(bool(expected["gradients"][name].any()) for name in of_psi)
    for mine in found:
        alike(mine["gradients"], expected["gradients"])
        alike(mine["buffers"], expected["buffers"])


def measured() -> Tensor:
    """The losses of the same samples in evaluation."""
    model, x = model_of({"method": "simclr"})
    with torch.no_grad():
        return model.eval().clean_losses(Batch(x[:SHARE], torch.arange(SHARE)))


def test_losses_in_evaluation_do_not_count_the_copies_that_other_processes_measure(everywhere: Everywhere) -> None:
    alone = measured()
    for mine in everywhere(measured):
        torch.testing.assert_close(mine, alone)


def statistics_of_a_step() -> dict[str, Tensor]:
    """The running statistics of this process's share of a batch, averaged over the processes."""
    norm = nn.BatchNorm2d(3).double()
    norm(images().chunk(PROCESSES)[distributed.get_rank()])
    Member(torch.device("cpu")).average_statistics(norm)
    return norm.state_dict()


def images() -> Tensor:
    return 5 + torch.randn(6, 3, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_running_statistics_are_the_mean_of_those_of_all_processes(everywhere: Everywhere) -> None:
    alone = [nn.BatchNorm2d(3).double() for _ in range(PROCESSES)]
    for norm, share in zip(alone, images().chunk(PROCESSES), strict=True):
        norm(share)
    for mine in everywhere(statistics_of_a_step):
        for name in ("running_mean", "running_var"):
            torch.testing.assert_close(mine[name], (getattr(alone[0], name) + getattr(alone[1], name)) / 2)
