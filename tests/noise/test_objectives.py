from __future__ import annotations

import math

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pinoise.methods import nt_xent
from pinoise.networks import MLPEncoder, ProjectionHead
from pinoise.noise import OBJECTIVES, Fixed, Objective, Paper, PiNoise


@pytest.mark.parametrize("penalty", [0.0, 0.5, 3.0])
def test_paper_is_the_mean_loss_plus_the_weighted_penalty(penalty: float) -> None:
    losses = torch.tensor([1.0, 2.0, 6.0])
    noise = torch.tensor([[[3.0, 4.0]], [[0.0, 1.0]], [[6.0, 8.0]]])
    expected = (1 + 2 + 6) / 3 + penalty / ((5 + 1 + 10) / 3)
    assert float(Paper(penalty=penalty)(losses, noise)) == pytest.approx(expected)


def test_paper_penalises_only_the_samples_that_drew_the_noise() -> None:
    losses = torch.tensor([1.0, 2.0, 6.0])
    noise = torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    drew = torch.tensor([True, False, True])
    assert float(Paper(penalty=0.5)(losses, noise, drew)) == pytest.approx(3 + 0.5 / ((5 + 10) / 2))
    assert float(Paper(penalty=0.5)(losses, noise, torch.zeros(3, dtype=torch.bool))) == pytest.approx(3)


def test_paper_without_noise_has_nothing_to_penalise() -> None:
    assert float(Paper(penalty=0.5)(torch.tensor([1.0, 3.0]))) == 2


def test_paper_gradient_agrees_with_finite_differences() -> None:
    torch.manual_seed(0)
    losses = torch.rand(3, dtype=torch.float64, requires_grad=True)
    noise = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Paper(penalty=0.5), (losses, noise))


def test_fixed_is_the_mean_loss_whatever_the_noise() -> None:
    losses = torch.tensor([1.0, 3.0])
    assert float(Fixed()(losses, torch.randn(2, 3), torch.tensor([True, False]))) == 2


def test_an_objective_says_whether_the_noise_learns() -> None:
    assert (Paper().learns_noise, Fixed().learns_noise) == (True, False)
    assert OBJECTIVES == ("paper", "fixed")


class Run:
    """A contrastive model on the handwritten digits, with the noise as its only augmentation (Algorithm 1)."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x = torch.tensor(load_digits().data, dtype=torch.float32)
        self.noise = PiNoise(64, hidden=128, initial_scale=0.5, feature_scale=self.x.std(0))
        self.encoder = nn.Sequential(MLPEncoder((64,), hidden=128, out_features=32), ProjectionHead(32))
        self.before = [copied(self.noise), copied(self.encoder)]

    def train(self, objective: Objective, *, steps: int) -> list[float]:
        learned = [*self.encoder.parameters(), *(self.noise.parameters() if objective.learns_noise else ())]
        optimizer = torch.optim.Adam(learned, lr=1e-3)
        history = []
        for _ in range(steps):
            x = self.x[torch.randint(len(self.x), (256,))]
            noise = self.noise.sample(x)
            loss = objective(nt_xent(*self.encoder(torch.cat([x, x + noise])).chunk(2)), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(float(loss.detach()))
        return history

    @torch.no_grad()
    def scale(self) -> float:
        """Mean σ of live features, in standard deviations."""
        return float(self.noise.relative_scale(self.x)[:, self.noise.feature_scale > 0].mean())

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


def test_the_papers_penalty_keeps_the_noise_from_vanishing() -> None:
    free, penalised = Run(), Run()
    free.train(Paper(), steps=150)
    penalised.train(Paper(penalty=30.0), steps=150)
    assert penalised.scale() > 2 * free.scale()


def test_fixed_noise_keeps_its_scale_while_the_encoder_learns() -> None:
    run = Run()
    start = run.scale()
    history = run.train(Fixed(), steps=30)
    assert run.scale() == start
    assert sum(history[-5:]) < sum(history[:5])
    psi, theta = run.moved()
    assert psi == 0
    assert theta > 0.1
