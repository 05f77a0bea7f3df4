from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.noise import Noise, inverse_norm
from pinoise.training.objectives import ContrastiveModel, Look
from pinoise.views import Batch

Problem = Callable[..., Any]
EVERYWHERE: list[dict[str, Any]] = [
    {},
    {"objective": "paper"},
    {"objective": "paper", "noise": {"generator": "shared"}},
    {"method": "simcl"},
    {"method": "clae", "noise": {"mean": "learned"}},
    {"views": {"augmentations": ["scarf"]}},
    {"views": {"pairing": "compose", "augmentations": ["gaussian"]}, "noise": {"neighbours": 0}},
]


def some(rows: Any, size: int = 40) -> Batch:
    return Batch(rows[torch.arange(size)], torch.arange(size))


def gradients(model: ContrastiveModel, loss: Tensor) -> tuple[list[Tensor | None], list[Tensor | None]]:
    """Of θ and of ψ; None where nothing arrives."""
    assert model.noise is not None
    theta, psi = list(model.method.parameters()), list(model.noise.parameters())
    found = torch.autograd.grad(loss, [*theta, *psi], allow_unused=True)
    return list(found[: len(theta)]), list(found[len(theta) :])


def looked(
    model: ContrastiveModel, batch: Batch, **how: Any
) -> tuple[list[Tensor | None], list[Tensor | None], Tensor]:
    """The gradients of one look, with the same draws every time, and its losses."""
    torch.manual_seed(5)
    losses = model.look(batch, **how).losses
    return *gradients(model, losses.mean()), losses.detach()


@pytest.mark.parametrize("changes", EVERYWHERE)
def test_a_look_sends_gradient_to_theta_and_to_psi_as_asked(problem: Problem, changes: dict[str, Any]) -> None:
    _, model, rows = problem(**changes)
    batch = some(rows)
    theta, psi, losses = looked(model, batch)
    assert all(g is not None and bool((g != 0).any()) for g in (*theta, *psi))

    without_theta, same_psi, same_losses = looked(model, batch, theta=False)
    assert all(g is None for g in without_theta)
    torch.testing.assert_close(same_psi, psi)
    torch.testing.assert_close(same_losses, losses)

    same_theta, without_psi, same_losses = looked(model, batch, psi=0.0)
    assert all(g is None for g in without_psi)
    torch.testing.assert_close(same_theta, theta)
    torch.testing.assert_close(same_losses, losses)

    for factor in (-1.0, 2.5):
        same_theta, scaled_psi, same_losses = looked(model, batch, psi=factor)
        torch.testing.assert_close(same_theta, theta)
        torch.testing.assert_close(scaled_psi, [factor * g for g in psi if g is not None])
        torch.testing.assert_close(same_losses, losses)


def test_a_look_without_theta_leaves_the_weights_as_they_are_and_without_gradient(problem: Problem) -> None:
    _, model, rows = problem()
    before = [p.clone() for p in model.method.parameters()]
    model.look(some(rows), theta=False).losses.sum().backward()
    assert all(p.grad is None and p.requires_grad for p in model.method.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, model.method.parameters(), strict=True))


def test_looks_are_independent_draws_with_their_noise(problem: Problem) -> None:
    _, model, rows = problem()
    first, second = model.look(some(rows)), model.look(some(rows))
    assert not torch.equal(first.losses, second.losses)
    assert first.epsilon.shape == (80, 64)  # both views have noise
    assert first.scale.shape == (1, 64)  # which is one number per feature
    assert first.drew is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"objective": "paper"}, lambda model, look: look.losses.mean()),
        (
            {"objective": {"name": "paper", "penalty": 3.0}},
            lambda model, look: look.losses.mean() + 3 * inverse_norm(look.epsilon),
        ),
        ({"objective": "fixed"}, lambda model, look: look.losses.mean()),
        ({"objective": "adversarial"}, lambda model, look: look.losses.mean()),
        ({"objective": {"weight": 0.0}}, lambda model, look: look.losses.mean()),
        (
            {"objective": {"weight": 0.7}},
            lambda model, look: look.losses.mean() + 0.7 * slow_distance(model.noise.relative_scale, model),
        ),
    ],
)
def test_a_step_minimises_what_the_objective_says(
    problem: Problem, changes: dict[str, Any], expected: Callable[..., Tensor]
) -> None:
    _, model, rows = problem(**changes)
    if model.objective.learns_noise:
        for parameter in model.noise.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
    batch = some(rows)
    torch.manual_seed(5)
    step = model(batch)
    torch.manual_seed(5)
    look = model.look(batch)
    torch.testing.assert_close(step.losses, look.losses.detach())
    torch.testing.assert_close(step.loss, expected(model, look))
    assert not step.losses.requires_grad


def slow_distance(relative_scale: Callable[[Tensor], Tensor], model: ContrastiveModel) -> float:
    """Mean (log σ − log r)² over live features, in numpy."""
    assert model.noise is not None
    live = model.noise.feature_scale.numpy() > 0
    sigma = relative_scale(torch.zeros(1, 64)).detach().double().numpy()[0, live]
    prior = model.noise.initial_scale.double().numpy()[live]
    return float(np.mean((np.log(sigma) - np.log(prior)) ** 2))


@pytest.mark.parametrize(("objective", "direction"), [("paper", 1), ("adversarial", -1), ("supported", 1)])
def test_the_noise_goes_with_the_encoder_or_against_it(problem: Problem, objective: str, direction: int) -> None:
    changes = {"objective": {"name": "supported", "weight": 0.0}} if objective == "supported" else {}
    _, model, rows = problem(**{"objective": objective, **changes})
    batch = some(rows)
    _, cooperative, _ = looked(model, batch)
    torch.manual_seed(5)
    _, found = gradients(model, model(batch).loss)
    torch.testing.assert_close(found, [direction * g for g in cooperative if g is not None])


def test_the_information_that_noise_maximises_does_not_reach_the_encoder(problem: Problem) -> None:
    _, model, rows = problem(objective={"name": "information", "draws": 3})
    batch = some(rows)
    theta, _, _ = looked(model, batch)
    torch.manual_seed(5)
    step = model(batch)
    found, psi = gradients(model, step.loss)
    torch.testing.assert_close(found, theta)
    assert all(g is not None and bool((g != 0).any()) for g in psi)
    assert step.loss < step.losses.mean()  # the information, which is positive, is taken off


@pytest.mark.parametrize("method", ["simclr", "simcl", "clae"])
def test_a_shared_generator_reuses_the_features_of_x_without_changing_the_result(problem: Problem, method: str) -> None:
    _, model, rows = problem(objective="paper", method=method, noise={"generator": "shared"})
    batch = some(rows)
    calls: list[int] = []
    model.method.encoder.register_forward_hook(lambda module, inputs, output: calls.append(len(inputs[0])))

    torch.manual_seed(5)
    reused = model(batch)
    with_reuse = torch.autograd.grad(reused.loss, list(model.parameters()))
    passes = sum(calls)
    calls.clear()
    torch.manual_seed(5)
    views = model.pairing(batch)  # without the features at hand
    plain = model.method(views).mean()
    expected = torch.autograd.grad(plain, list(model.parameters()))

    torch.testing.assert_close(reused.loss, plain)
    for got, wanted in zip(with_reuse, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-5)
    assert passes == sum(calls) - 40


@pytest.mark.parametrize("method", ["simclr", "simcl"])
def test_clean_losses_are_those_of_the_samples_themselves(problem: Problem, method: str) -> None:
    _, model, rows = problem(method=method)
    batch = some(rows)
    torch.manual_seed(1)
    clean = model.clean_losses(batch)
    torch.manual_seed(1)
    assert torch.equal(clean, model.method([batch, batch]))


def test_a_method_of_its_own_views_is_clean_with_one(problem: Problem) -> None:
    _, model, rows = problem(method="clae", views={"noise": "none"})
    assert torch.equal(model.clean_losses(some(rows)), model.method([some(rows)]))


def look_at(*views: tuple[Tensor, Tensor, Tensor | None]) -> Look:
    rows = torch.arange(2)
    made = [Batch(torch.zeros(2, 3), rows, Noise(epsilon, scale), drew) for epsilon, scale, drew in views]
    return Look(torch.zeros(2), [Batch(torch.zeros(2, 3), rows), *made])


def test_noise_of_several_views_is_joined_with_who_drew_it() -> None:
    one, two = torch.ones(2, 3), 2 * torch.ones(2, 3)
    look = look_at((one, 3 * one, None), (two, 4 * one, torch.tensor([True, False])))
    assert torch.equal(look.epsilon, torch.cat([one, two]))
    assert torch.equal(look.scale, torch.cat([3 * one, 4 * one]))
    assert look.drew is not None
    assert look.drew.tolist() == [True, True, True, False]
    assert look_at((one, one, None)).drew is None
    assert look_at().noises == []


def test_a_scale_that_views_share_is_kept_once() -> None:
    one, shared = torch.ones(2, 3), torch.ones(1, 3)
    assert look_at((one, shared, None), (one, shared, None)).scale is shared
    assert look_at((one, shared, None), (one, 2 * shared, None)).scale.tolist() == [[1.0] * 3, [2.0] * 3]
