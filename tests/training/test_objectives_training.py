"""What becomes of the noise and of the encoder when real data is trained on under each objective."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pinoise.methods import SimCLR
from pinoise.networks import MLPEncoder, ProjectionHead
from pinoise.noise import PiNoise, Support
from pinoise.training.objectives import Adversarial, ContrastiveModel, Objective, Paper, Supported
from pinoise.views import Batch, Pairing, PiNoiseView


class Run:
    """A contrastive model on the handwritten digits, with the noise as its only augmentation (Algorithm 1)."""

    def __init__(self, *, along_the_data: bool = False, **settings: Any) -> None:
        torch.manual_seed(0)
        digits = torch.tensor(load_digits().data, dtype=torch.float32)
        unit = digits.std(0)
        self.x = digits[:500] if along_the_data else digits
        self.live = unit > 0
        support = None
        if along_the_data:
            support = Support(self.x, numbers=torch.arange(500), rows=500, k=5)
            spread = torch.where(self.live, support.spread() / unit, 1)
            settings |= {"initial_scale": spread.clamp(0.2, 1.0)}
        settings = {"hidden": 128, "initial_scale": 0.5} | settings
        self.noise = PiNoise(64, feature_scale=unit, support=support, **settings)
        self.encoder = MLPEncoder((64,), hidden=128, out_features=32)
        self.before = [copied(self.noise), copied(self.encoder)]

    def train(self, objective: Objective, *, steps: int, batch: int = 256, rate: float = 1e-3) -> list[float]:
        """Return ℓ at every step; ``rate`` is that of ψ."""
        model = ContrastiveModel(
            pairing=Pairing("identity-noise", noise=PiNoiseView(self.noise)),
            method=SimCLR(self.encoder, ProjectionHead(32), temperature=0.1),
            objective=objective,
        )
        groups: list[dict[str, Any]] = [{"params": list(model.method.parameters())}]
        if objective.learns_noise:
            groups.append({"params": list(self.noise.parameters()), "lr": rate})
        optimizer = torch.optim.Adam(groups, lr=1e-3)
        history = []
        for _ in range(steps):
            rows = torch.randint(len(self.x), (batch,))
            loss, losses = model(Batch(self.x[rows], rows))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(float(losses.mean()))
        return history

    @torch.no_grad()
    def log_scale(self) -> Tensor:
        """Log σ of live features, in standard deviations, of every sample."""
        return self.noise.relative_scale(self.x)[:, self.live].log()

    def scale(self) -> float:
        """Mean σ of live features, in standard deviations."""
        return float(self.log_scale().exp().mean())

    def moved(self) -> list[float]:
        """How far ψ and θ are from where they started."""
        now = [copied(self.noise), copied(self.encoder)]
        return [float((a - b).norm()) for a, b in zip(now, self.before, strict=True)]


def copied(module: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(module.parameters()).detach().clone()


def test_the_papers_objective_on_vectors_learns_to_make_no_noise() -> None:
    run = Run()
    start = run.scale()
    history = run.train(Paper(), steps=150)
    assert start == pytest.approx(0.5, rel=0.1)
    assert run.scale() < 0.1 * start
    assert all(math.isfinite(loss) for loss in history)
    assert sum(history[-10:]) < 0.5 * sum(history[:10])
    assert all(distance > 0.1 for distance in run.moved())


@pytest.mark.slow
def test_the_papers_penalty_keeps_the_noise_from_vanishing() -> None:
    free, penalised = Run(), Run()
    free.train(Paper(), steps=150)
    penalised.train(Paper(penalty=30.0), steps=150)
    assert penalised.scale() > 2 * free.scale()


@pytest.mark.parametrize("generator", ["global", "mlp"])
def test_supported_noise_moves_between_features_and_keeps_its_entropy(generator: str) -> None:
    run = Run(along_the_data=True, generator=generator, positive="fixed-entropy")
    before = run.log_scale()
    prior = run.noise.initial_scale.clone()
    history = run.train(Supported(prior, weight=0.3), steps=60, batch=128, rate=1e-2)
    after = run.log_scale()
    torch.testing.assert_close(after.mean(dim=1), before.mean(dim=1), atol=1e-5, rtol=0)
    assert float((after - before).abs().mean()) > 0.1
    assert sum(history[-5:]) < sum(history[:5])
    assert all(math.isfinite(loss) for loss in history)
    assert run.noise.support is not None
    assert not torch.equal(run.noise.support.metric, torch.ones(64))  # its neighbours follow


def test_the_prior_keeps_supported_noise_near_how_much_neighbours_differ() -> None:
    distance = {}
    for weight in (0.0, 3.0):
        run = Run(along_the_data=True, generator="global", positive="fixed-entropy")
        prior = run.noise.initial_scale.clone()
        run.train(Supported(prior, weight=weight), steps=60, batch=128, rate=1e-2)
        distance[weight] = float((run.log_scale() - prior[run.live].log()).square().mean())
    assert distance[3.0] < 0.3 * distance[0.0]


def test_adversarial_noise_grows_where_the_papers_shrinks() -> None:
    cooperative, adversarial = (Run(generator="global") for _ in range(2))
    cooperative.train(Paper(), steps=30, rate=1e-2)
    adversarial.train(Adversarial(), steps=30, rate=1e-2)
    assert cooperative.scale() < 0.45
    assert adversarial.scale() > 0.55
