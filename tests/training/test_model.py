from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pinoise.training.model import stack_noise
from pinoise.views import Batch

Problem = Callable[..., Any]


@pytest.mark.parametrize("method", ["simclr", "simcl", "clae"])
def test_a_shared_generator_reuses_the_features_of_x_without_changing_the_result(problem: Problem, method: str) -> None:
    _, model, rows = problem(method=method, noise={"generator": "shared"})
    batch = Batch(rows[torch.arange(40)], torch.arange(40))
    calls: list[int] = []
    model.method.encoder.register_forward_hook(lambda module, inputs, output: calls.append(len(inputs[0])))

    torch.manual_seed(5)
    reused = model(batch)
    gradients = torch.autograd.grad(reused.loss, list(model.parameters()))
    passes = sum(calls)
    calls.clear()
    torch.manual_seed(5)
    views = model.pairing(batch)  # without the features at hand
    plain = model.objective(model.method(views))
    expected = torch.autograd.grad(plain, list(model.parameters()))

    torch.testing.assert_close(reused.loss, plain)
    for got, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-5)
    assert passes == sum(calls) - 40


def test_noise_of_several_views_is_joined_with_who_drew_it() -> None:
    rows = torch.arange(2)

    def view(noise: Tensor | None, drew: Tensor | None) -> Batch:
        return Batch(torch.zeros(2, 3), rows, noise, drew)

    noise, drew = stack_noise([view(torch.ones(2, 3), None), view(2 * torch.ones(2, 3), torch.tensor([True, False]))])
    assert noise is not None
    assert drew is not None
    assert noise.shape == (4, 3)
    assert drew.tolist() == [True, True, True, False]
    assert stack_noise([view(torch.ones(2, 3), None)])[1] is None


def test_the_penalty_pulls_the_noise_up(problem: Problem) -> None:
    _, model, rows = problem(objective={"name": "paper", "penalty": 1e4})
    batch = Batch(rows[torch.arange(40)], torch.arange(40))
    model(batch).loss.backward()
    bias = model.noise.generator.heads[0][-1].bias
    live = model.noise.feature_scale > 0
    assert (bias.grad[live] < 0).float().mean() > 0.9  # descent raises σ
