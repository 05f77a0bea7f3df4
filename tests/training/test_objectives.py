from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pinoise.choices import OBJECTIVE, find
from pinoise.errors import UserError
from pinoise.information import mutual_information
from pinoise.networks import MLPEncoder
from pinoise.noise import Noise, PiNoise
from pinoise.training.objectives import (
    Adversarial,
    Fixed,
    FunctionObjective,
    Information,
    Look,
    Objective,
    Paper,
    Supported,
)
from pinoise.views import Batch, Site

LOSSES = torch.tensor([1.0, 2.0, 6.0])


def look_at(epsilon: Tensor, scale: Tensor | None = None, drew: Tensor | None = None, losses: Tensor = LOSSES) -> Look:
    noise = Noise(epsilon, torch.ones_like(epsilon) if scale is None else scale)
    return Look(losses, [Batch(torch.zeros_like(epsilon), torch.arange(len(epsilon)), noise, drew)])


class TwoScalars:
    """A task in which θ and ψ are one number each: ℓ_i = (θ − x_i − ψ n_i)² with a fresh draw n at every look."""

    def __init__(self, *, draws: int = 5) -> None:
        self.theta = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        self.psi = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
        self.x = torch.randn(6, dtype=torch.float64)
        self.draws = torch.randn(draws, 6, dtype=torch.float64)
        self.looks = 0

    def losses(self, look: int, theta: Tensor, psi: Tensor) -> Tensor:
        return (theta - self.x - psi * self.draws[look]).square()

    def look(self, *, theta: bool = True, psi: float = 1.0) -> Look:
        held = self.psi.detach()
        # The value is ψ's whatever the factor, which only scales the gradient.
        scaled = held + psi * (self.psi - held) if psi else held
        losses = self.losses(self.looks, self.theta if theta else self.theta.detach(), scaled)
        epsilon = scaled * self.draws[self.looks]
        self.looks += 1
        return look_at(epsilon[:, None], scaled.reshape(1, 1), losses=losses)

    def value(self, objective: Objective) -> Tensor:
        """What the objective makes of as many looks as it wants, from which θ and ψ learn as it says."""
        look = self.look(psi=objective.psi)
        further = [self.look(theta=False) for _ in range(objective.further_looks)]
        value: Tensor = objective(look, further)
        return value

    def gradients(self, value: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Of θ and of ψ; None where it reaches nothing."""
        theta, psi = torch.autograd.grad(value, [self.theta, self.psi], allow_unused=True)
        return theta, psi


def both(task: TwoScalars, value: Tensor) -> tuple[float, float]:
    theta, psi = task.gradients(value)
    assert theta is not None
    assert psi is not None
    return float(theta), float(psi)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 3.0])
def test_paper_is_the_mean_loss_plus_the_weighted_penalty(penalty: float) -> None:
    epsilon = torch.tensor([[[3.0, 4.0]], [[0.0, 1.0]], [[6.0, 8.0]]])
    loss = Paper(penalty=penalty)(look_at(epsilon))
    assert float(loss) == pytest.approx((1 + 2 + 6) / 3 + penalty / ((5 + 1 + 10) / 3))


def test_paper_penalises_only_the_samples_that_drew_the_noise() -> None:
    epsilon = torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    some, nobody = torch.tensor([True, False, True]), torch.zeros(3, dtype=torch.bool)
    assert float(Paper(penalty=0.5)(look_at(epsilon, drew=some))) == pytest.approx(3 + 0.5 / ((5 + 10) / 2))
    assert float(Paper(penalty=0.5)(look_at(epsilon, drew=nobody))) == pytest.approx(3)


@pytest.mark.parametrize("objective", [Paper(penalty=0.5), Supported(torch.ones(2), weight=0.5)], ids=repr)
def test_without_noise_there_is_nothing_to_judge(objective: Objective) -> None:
    assert float(objective(Look(LOSSES))) == 3


def test_paper_gradient_agrees_with_finite_differences() -> None:
    losses = torch.rand(3, dtype=torch.float64, requires_grad=True)
    epsilon = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def value(losses: Tensor, epsilon: Tensor) -> Tensor:
        loss: Tensor = Paper(penalty=0.5)(look_at(epsilon, losses=losses))
        return loss

    assert torch.autograd.gradcheck(value, (losses, epsilon))


def test_adversarial_turns_the_gradient_of_psi_around_and_not_that_of_theta() -> None:
    task = TwoScalars()
    loss = task.value(Adversarial())
    plain = task.losses(0, task.theta, task.psi)
    assert float(loss.detach()) == pytest.approx(float(plain.detach().mean()))
    theta, psi = both(task, plain.mean())
    assert both(task, loss) == pytest.approx((theta, -psi))


@pytest.mark.parametrize("objective", [Paper(), Supported(torch.ones(1), weight=0.0)], ids=repr)
def test_theta_and_psi_both_descend_under_the_cooperative_objectives(objective: Objective) -> None:
    task = TwoScalars()
    loss = task.value(objective)
    plain = task.losses(0, task.theta, task.psi)
    assert both(task, loss) == pytest.approx(both(task, plain.mean()))


@pytest.mark.parametrize("draws", [2, 4])
def test_information_lets_theta_descend_the_loss_and_psi_climb_the_information(draws: int) -> None:
    task = TwoScalars()
    loss = task.value(Information(draws=draws))
    assert task.looks == 1 + draws
    plain = task.losses(0, task.theta, task.psi)
    under_draws = torch.stack([task.losses(k + 1, task.theta, task.psi) for k in range(draws)], dim=1)  # (m, K)
    information = mutual_information(under_draws).mean()
    assert float(information.detach()) > 0
    assert float(loss.detach()) == pytest.approx(float((plain.mean() - information).detach()))
    assert both(task, loss) == pytest.approx((both(task, plain.mean())[0], -both(task, information)[1]))


@pytest.mark.parametrize("draws", [0, 1])
def test_information_from_fewer_than_two_draws_is_refused(draws: int) -> None:
    with pytest.raises(UserError, match=rf"draws is {draws}: it must be from 2 to 64"):
        Information(draws=draws)


def test_a_function_of_a_users_own_sees_the_look_and_teaches_both() -> None:
    task = TwoScalars()
    loss = task.value(FunctionObjective(lambda look: look.losses.square().sum()))
    plain = task.losses(0, task.theta, task.psi).square().sum()
    assert float(loss.detach()) == pytest.approx(float(plain.detach()))
    assert both(task, loss) == pytest.approx(both(task, plain))
    assert FunctionObjective.learns_noise


def slow_prior_term(scale: Tensor, prior: Tensor, drew: list[bool]) -> float:
    """Mean over samples that drew of the mean over live features of (log σ − log r)², one entry at a time."""
    values = []
    for sample, has in zip(scale.flatten(1).tolist(), drew, strict=True):
        squares = [(math.log(s) - math.log(r)) ** 2 for s, r in zip(sample, prior.flatten().tolist(), strict=True) if s]
        if has:
            values.append(sum(squares) / len(squares))
    return sum(values) / len(values)


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
@pytest.mark.parametrize("drew", [None, [True, False, True], [False, False, True]])
def test_supported_adds_the_distance_of_each_samples_scale_from_the_prior(
    shape: tuple[int, ...], drew: list[bool] | None
) -> None:
    scale, prior = torch.rand(3, *shape) + 0.1, torch.rand(shape) + 0.1
    scale.flatten(1)[:, 2] = 0  # dead
    look = look_at(torch.randn(3, *shape), scale, None if drew is None else torch.tensor(drew))
    loss = Supported(prior, weight=0.7)(look)
    expected = 3 + 0.7 * slow_prior_term(scale, prior, drew or [True] * 3)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("drew", [None, [True, False, True], [False, False, False]])
def test_supported_counts_a_scale_that_all_samples_share_once_whoever_drew(drew: list[bool] | None) -> None:
    scale, prior = torch.tensor([[0.5, 0.0, 2.0]]), torch.tensor([1.0, 3.0, 0.7])
    look = look_at(torch.randn(3, 3), scale, None if drew is None else torch.tensor(drew))
    expected = 3 + 0.7 * slow_prior_term(scale, prior, [True])
    assert float(Supported(prior, weight=0.7)(look)) == pytest.approx(expected, rel=1e-5)


def test_supported_has_nothing_to_add_where_nobody_drew_or_the_scale_is_the_prior() -> None:
    prior = torch.tensor([1.0, 3.0])
    nobody = look_at(torch.zeros(3, 2), torch.rand(3, 2), torch.zeros(3, dtype=torch.bool))
    assert float(Supported(prior)(nobody)) == pytest.approx(3)
    at_prior = look_at(torch.zeros(3, 2), prior.expand(3, 2))
    assert float(Supported(prior)(at_prior)) == pytest.approx(3)


def test_the_prior_pulls_psi_towards_itself() -> None:
    for prior in (0.1, 4.0):
        free, held = TwoScalars(), TwoScalars()
        held.x, held.draws = free.x, free.draws
        (_, without), (_, pulled) = (
            both(task, task.value(Supported(torch.full((1,), prior, dtype=torch.float64), weight=weight)))
            for task, weight in ((free, 0.0), (held, 0.5))
        )
        # d/dψ of (log ψ − log r)²
        assert pulled - without == pytest.approx(0.5 * 2 * math.log(0.4 / prior) / 0.4)


def make_site(noise: PiNoise | None) -> Site:
    encoder = MLPEncoder((3,), hidden=4, out_features=2)
    rows = torch.randn(12, 3)
    return Site(torch.ones(3), rows, encoder, head_hidden=4, head_features=2, batch_size=6, noise=noise)


@pytest.mark.parametrize("name", OBJECTIVE.names)
@pytest.mark.parametrize("noisy", [True, False], ids=["learned noise", "predefined views"])
def test_every_objective_is_built_for_its_place(name: str, noisy: bool) -> None:
    initial = torch.tensor([0.3, 0.5, 0.7])
    noise = PiNoise(3, generator="global", initial_scale=initial)
    objective = find(OBJECTIVE, name).build(make_site(noise if noisy else None))
    look = look_at(*noise.draw(torch.randn(3, 3), 1)[0]) if noisy else Look(LOSSES)
    assert bool(objective(look, [look] * objective.further_looks).isfinite())
    if name == "supported" and noisy:
        assert torch.equal(objective.prior, initial)
        noise.initial_scale.fill_(9.0)
        assert torch.equal(objective.prior, initial)  # its own
    elif name == "supported":
        assert isinstance(objective, Fixed)
