from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.information import quadrature
from pinoise.information.quadrature import mean_divergence, sufficient_points


def test_many_rows_are_computed_in_chunks_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = torch.rand(50, 3, dtype=torch.float64) * 10
    whole = mean_divergence(losses)
    sizes: list[int] = []
    one_chunk = quadrature._divergence

    def watched(chunk: Tensor, points: int) -> Tensor:
        sizes.append(len(chunk))
        return one_chunk(chunk, points)

    monkeypatch.setattr(quadrature, "_divergence", watched)
    monkeypatch.setattr(quadrature, "_MAX_ELEMENTS", 7 * 3 * quadrature.POINTS)
    torch.testing.assert_close(mean_divergence(losses), whole)
    assert max(sizes) == 7


def test_a_wide_gap_needs_no_more_points_than_one_of_40() -> None:
    far = torch.tensor([[0.0, 1e6], [0.0, 1e30]], dtype=torch.float64)
    assert sufficient_points(far) == sufficient_points(torch.tensor([[0.0, 40.0]]))
    torch.testing.assert_close(mean_divergence(far), torch.full((2,), math.log(2), dtype=torch.float64))


def test_sufficient_points_are_enough_where_the_default_is_not() -> None:
    losses = torch.arange(12, dtype=torch.float64)[None] * 39  # nearly apart, over 429
    truth = mean_divergence(losses, points=20_000)
    assert float(truth) == pytest.approx(math.log(12), abs=1e-5)
    assert abs(float(mean_divergence(losses) - truth)) > 1e-3
    assert abs(float(mean_divergence(losses, points=sufficient_points(losses)) - truth)) < 1e-6


def test_more_draws_than_double_precision_can_hold_apart_stay_finite() -> None:
    losses = (torch.arange(64, dtype=torch.float64)[None] * 1e4).requires_grad_()
    divergence = mean_divergence(losses, points=sufficient_points(losses))
    divergence.sum().backward()
    assert 0 < float(divergence.detach()) <= math.log(64)
    assert losses.grad is not None
    assert bool(losses.grad.isfinite().all())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_only_the_row_that_is_not_finite_becomes_nan(bad: float) -> None:
    divergence = mean_divergence(torch.tensor([[0.0, 1.0], [bad, 1.0]]))
    assert divergence.isnan().tolist() == [False, True]


def test_too_few_points_are_refused() -> None:
    with pytest.raises(UserError, match="points is 3: the quadrature needs at least 16"):
        mean_divergence(torch.zeros(2, 2), points=3)


def test_whole_numbers_are_refused() -> None:
    with pytest.raises(UserError, match=r"losses are of type torch\.int64: give floating-point numbers"):
        mean_divergence(torch.zeros(2, 2, dtype=torch.int64))
