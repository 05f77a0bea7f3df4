from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.information import mutual_information
from pinoise.noise import Adversarial, Fixed, Information, Look, Noise, Objective, Outcome, Paper, Supported

LOSSES = torch.tensor([1.0, 2.0, 6.0])


def shows(outcome: Outcome) -> Look:
    """Look at a batch that always shows the same."""

    def look(*, theta: bool = True, psi: float = 1.0) -> Outcome:
        return outcome

    return look


def noise_of(epsilon: Tensor, scale: Tensor | None = None) -> Noise:
    return Noise(epsilon, torch.ones_like(epsilon) if scale is None else scale)


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

    def __call__(self, *, theta: bool = True, psi: float = 1.0) -> Outcome:
        held = self.psi.detach()
        # The value is ψ's whatever the factor, which only scales the gradient.
        scaled = held + psi * (self.psi - held) if psi else held
        losses = self.losses(self.looks, self.theta if theta else self.theta.detach(), scaled)
        epsilon = scaled * self.draws[self.looks]
        self.looks += 1
        return Outcome(losses, Noise(epsilon[:, None], scaled.reshape(1, 1)))

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
    loss, losses = Paper(penalty=penalty)(shows(Outcome(LOSSES, noise_of(epsilon))))
    assert float(loss) == pytest.approx((1 + 2 + 6) / 3 + penalty / ((5 + 1 + 10) / 3))
    assert losses is LOSSES


def test_paper_penalises_only_the_samples_that_drew_the_noise() -> None:
    noise = noise_of(torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]))
    some, nobody = torch.tensor([True, False, True]), torch.zeros(3, dtype=torch.bool)
    assert float(Paper(penalty=0.5)(shows(Outcome(LOSSES, noise, some)))[0]) == pytest.approx(3 + 0.5 / ((5 + 10) / 2))
    assert float(Paper(penalty=0.5)(shows(Outcome(LOSSES, noise, nobody)))[0]) == pytest.approx(3)


@pytest.mark.parametrize("objective", [Paper(penalty=0.5), Supported(prior=torch.ones(2), weight=0.5)], ids=repr)
def test_without_noise_there_is_nothing_to_judge(objective: Objective) -> None:
    assert float(objective(shows(Outcome(LOSSES)))[0]) == 3


def test_paper_gradient_agrees_with_finite_differences() -> None:
    losses = torch.rand(3, dtype=torch.float64, requires_grad=True)
    epsilon = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)

    def value(losses: Tensor, epsilon: Tensor) -> Tensor:
        loss: Tensor = Paper(penalty=0.5)(shows(Outcome(losses, noise_of(epsilon))))[0]
        return loss

    assert torch.autograd.gradcheck(value, (losses, epsilon))


def test_an_objective_says_whether_the_noise_learns() -> None:
    learned = [Paper(), Supported(prior=torch.ones(1)), Adversarial(), Information(mutual_information)]
    assert all(objective.learns_noise for objective in learned)
    assert not Fixed().learns_noise


def test_an_objective_without_forward_is_abstract() -> None:
    with pytest.raises(NotImplementedError):
        Objective()(shows(Outcome(LOSSES)))


def test_fixed_is_the_mean_loss_and_gives_psi_no_gradient() -> None:
    task = TwoScalars()
    loss, losses = Fixed()(task)
    plain = task.losses(0, task.theta, task.psi)
    assert torch.equal(losses, plain)
    assert float(loss.detach()) == pytest.approx(float(plain.detach().mean()))
    theta, psi = task.gradients(loss)
    assert psi is None
    assert theta is not None
    assert float(theta) == pytest.approx(both(task, plain.mean())[0])


def test_adversarial_turns_the_gradient_of_psi_around_and_not_that_of_theta() -> None:
    task = TwoScalars()
    loss, losses = Adversarial()(task)
    plain = task.losses(0, task.theta, task.psi)
    torch.testing.assert_close(losses, plain)
    assert float(loss.detach()) == pytest.approx(float(plain.detach().mean()))
    theta, psi = both(task, plain.mean())
    assert both(task, loss) == pytest.approx((theta, -psi))


@pytest.mark.parametrize("objective", [Paper(), Supported(prior=torch.ones(1), weight=0.0)], ids=repr)
def test_theta_and_psi_both_descend_under_the_cooperative_objectives(objective: Objective) -> None:
    task = TwoScalars()
    loss, losses = objective(task)
    plain = task.losses(0, task.theta, task.psi)
    torch.testing.assert_close(losses, plain)
    assert both(task, loss) == pytest.approx(both(task, plain.mean()))


@pytest.mark.parametrize("draws", [2, 4])
def test_information_lets_theta_descend_the_loss_and_psi_climb_the_information(draws: int) -> None:
    task = TwoScalars()
    loss, losses = Information(mutual_information, draws=draws)(task)
    assert task.looks == 1 + draws
    plain = task.losses(0, task.theta, task.psi)
    torch.testing.assert_close(losses, plain)
    under_draws = torch.stack([task.losses(k + 1, task.theta, task.psi) for k in range(draws)], dim=1)  # (m, K)
    information = mutual_information(under_draws).mean()
    assert float(information.detach()) > 0
    assert float(loss.detach()) == pytest.approx(float((plain.mean() - information).detach()))
    assert both(task, loss) == pytest.approx((both(task, plain.mean())[0], -both(task, information)[1]))


def test_information_shows_the_losses_of_every_sample_in_a_row() -> None:
    seen: list[Tensor] = []

    def measure(losses: Tensor) -> Tensor:
        seen.append(losses)
        return losses.amax(dim=1) - losses.amin(dim=1)

    looks = iter([torch.zeros(2), torch.tensor([1.0, 5.0]), torch.tensor([2.0, 8.0])])
    loss, _ = Information(measure, draws=2)(lambda *, theta=True, psi=1.0: Outcome(next(looks)))
    assert seen[0].tolist() == [[1.0, 2.0], [5.0, 8.0]]
    assert float(loss) == pytest.approx(-(1 + 3) / 2)


@pytest.mark.parametrize("draws", [0, 1])
def test_information_from_fewer_than_two_draws_is_refused(draws: int) -> None:
    with pytest.raises(UserError, match=rf"draws is {draws}: the information in noise needs at least 2 draws"):
        Information(mutual_information, draws=draws)


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
    outcome = Outcome(LOSSES, noise_of(torch.randn(3, *shape), scale), None if drew is None else torch.tensor(drew))
    loss, losses = Supported(prior=prior, weight=0.7)(shows(outcome))
    expected = 3 + 0.7 * slow_prior_term(scale, prior, drew or [True] * 3)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert losses is LOSSES


@pytest.mark.parametrize("drew", [None, [True, False, True], [False, False, False]])
def test_supported_counts_a_scale_that_all_samples_share_once_whoever_drew(drew: list[bool] | None) -> None:
    scale, prior = torch.tensor([[0.5, 0.0, 2.0]]), torch.tensor([1.0, 3.0, 0.7])
    outcome = Outcome(LOSSES, noise_of(torch.randn(3, 3), scale), None if drew is None else torch.tensor(drew))
    expected = 3 + 0.7 * slow_prior_term(scale, prior, [True])
    assert float(Supported(prior=prior, weight=0.7)(shows(outcome))[0]) == pytest.approx(expected, rel=1e-5)


def test_supported_has_nothing_to_add_where_nobody_drew_or_the_scale_is_the_prior() -> None:
    prior = torch.tensor([1.0, 3.0])
    nobody = Outcome(LOSSES, noise_of(torch.zeros(3, 2), torch.rand(3, 2)), torch.zeros(3, dtype=torch.bool))
    assert float(Supported(prior=prior)(shows(nobody))[0]) == pytest.approx(3)
    at_prior = Outcome(LOSSES, noise_of(torch.zeros(3, 2), prior.expand(3, 2)))
    assert float(Supported(prior=prior)(shows(at_prior))[0]) == pytest.approx(3)


def test_the_prior_pulls_psi_towards_itself() -> None:
    for prior in (0.1, 4.0):
        free, held = TwoScalars(), TwoScalars()
        held.x, held.draws = free.x, free.draws
        (_, without), (_, pulled) = (
            both(task, Supported(prior=torch.full((1,), prior, dtype=torch.float64), weight=weight)(task)[0])
            for task, weight in ((free, 0.0), (held, 0.5))
        )
        # d/dψ of (log ψ − log r)²
        assert pulled - without == pytest.approx(0.5 * 2 * math.log(0.4 / prior) / 0.4)


def test_the_prior_is_saved_and_cast_with_the_objective() -> None:
    objective = Supported(prior=torch.tensor([0.5, 2.0]))
    assert set(objective.state_dict()) == {"prior"}
    assert list(objective.parameters()) == []
    assert objective.double().prior.dtype == torch.float64
