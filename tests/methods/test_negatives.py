"""InfoNCE against shared negatives, of MoCo."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, slow_info_nce
from torch import nn

from pinoise.methods import info_nce


@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize("temperature", [0.1, 0.2, 2.0])
@pytest.mark.parametrize("some", [False, True], ids=["all negatives", "some excluded"])
def test_agrees_with_one_negative_at_a_time(m: int, temperature: float, some: bool) -> None:
    anchor, positive = torch.randn(2, m, 6)
    negatives = nn.functional.normalize(torch.randn(11, 6), dim=1)
    excluded = torch.rand(m, 11) < 0.4 if some else None
    found = info_nce(anchor, positive, negatives, own=excluded, temperature=temperature)
    expected = [
        slow_info_nce(
            anchor[i].numpy(),
            positive[i].numpy(),
            (negatives if excluded is None else negatives[~excluded[i]]).numpy(),
            temperature,
        )
        for i in range(m)
    ]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("some", [False, True], ids=["all negatives", "some excluded"])
def test_gradient_agrees_with_finite_differences(some: bool, pair: Pair) -> None:
    anchor, positive = (view.clone().requires_grad_() for view in pair)
    negatives = nn.functional.normalize(torch.randn(7, 4, dtype=torch.float64), dim=1)
    excluded = torch.rand(6, 7) < 0.5 if some else None
    assert torch.autograd.gradcheck(lambda a, p: info_nce(a, p, negatives, own=excluded), (anchor, positive))


def test_a_sample_without_negatives_has_no_loss_and_a_finite_gradient() -> None:
    anchor = torch.randn(2, 3, requires_grad=True)
    loss = info_nce(anchor, torch.randn(2, 3), torch.eye(3), own=torch.ones(2, 3, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(loss.sum(), anchor)
    assert loss.tolist() == [0.0, 0.0]
    assert bool(gradient.isfinite().all())
