from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from torch import Tensor

from pinoise.networks import MLPEncoder
from pinoise.views import Batch, Mixup, Modals, Site
from pinoise.views.mixing import add_batch_noise, add_difference, extrapolate, interpolate, shuffled


def batch_of(x: Tensor) -> Batch:
    return Batch(x, torch.arange(len(x)))


def unit_vectors(m: int) -> Batch:
    """Sample i is the i-th unit vector, so that a mixture shows its weights."""
    return batch_of(torch.eye(m, dtype=torch.float64))


def random_batch(shape: tuple[int, ...] = (3, 2)) -> Batch:
    return batch_of(torch.randn(7, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64))


@pytest.mark.parametrize("m", range(2, 10))
def test_shuffled_gives_everyone_another_sample_and_uses_each_once(m: int) -> None:
    torch.manual_seed(m)
    for _ in range(20):
        order = shuffled(torch.arange(m))
        assert bool((order != torch.arange(m)).all())
        assert sorted(order.tolist()) == list(range(m))


def test_shuffled_gives_every_other_sample_equally_often() -> None:
    torch.manual_seed(0)
    orders = torch.stack([shuffled(torch.arange(6)) for _ in range(3000)])
    for sample in range(6):
        counts = np.bincount(orders[:, sample].numpy(), minlength=6)
        assert counts[sample] == 0
        assert chisquare(np.delete(counts, sample)).pvalue > 1e-4


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
def test_mixup_is_a_convex_combination_with_another_sample(alpha: float) -> None:
    torch.manual_seed(0)
    weights = Mixup(alpha=alpha)(unit_vectors(400)).x  # row i: the weight of every sample in view i
    ratio = weights.diagonal()
    others = weights - torch.diag(ratio)
    assert bool((weights >= 0).all())
    torch.testing.assert_close(weights.sum(1), torch.ones(400, dtype=torch.float64))
    assert (others > 0).sum(1).tolist() == [1] * 400
    assert bool(((ratio > alpha) & (ratio < 1)).all())
    assert kstest(ratio.numpy(), "uniform", args=(alpha, 1 - alpha)).pvalue > 1e-4


@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 1, 2)])
def test_interpolation_agrees_with_its_formula_for_some_other_sample(shape: tuple[int, ...]) -> None:
    batch = random_batch(shape)
    views = interpolate(batch.x, 0.3)
    for i, view in enumerate(views):
        candidates = [batch.x[i] + 0.3 * (batch.x[j] - batch.x[i]) for j in range(7) if j != i]
        assert sum(torch.allclose(view, candidate, rtol=0, atol=1e-12) for candidate in candidates) == 1


@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 1, 2)])
def test_extrapolation_goes_away_from_the_mean_of_the_batch(shape: tuple[int, ...]) -> None:
    batch = random_batch(shape)
    x = batch.x.numpy()
    views = extrapolate(batch.x, 0.3).numpy()
    mean = sum(x[i] for i in range(7)) / 7
    for i in range(7):
        np.testing.assert_allclose(views[i], x[i] + 0.3 * (x[i] - mean), atol=1e-12)


@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 1, 2)])
def test_batch_gaussian_agrees_with_one_feature_at_a_time(shape: tuple[int, ...]) -> None:
    batch = random_batch(shape)
    torch.manual_seed(3)
    draw = torch.randn_like(batch.x)
    torch.manual_seed(3)
    views = add_batch_noise(batch.x, 0.3)
    for index in np.ndindex(*shape):
        column = [float(batch.x[(i, *index)]) for i in range(7)]
        mean = sum(column) / 7
        deviation = math.sqrt(sum((value - mean) ** 2 for value in column) / 7)
        for i in range(7):
            expected = column[i] + 0.3 * deviation * float(draw[(i, *index)])
            assert float(views[(i, *index)]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 1, 2)])
def test_difference_adds_the_difference_of_two_other_samples(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    batch = random_batch(shape)
    views = add_difference(batch.x, 0.3)
    for i, view in enumerate(views):
        others = [batch.x[j] for j in range(7) if j != i]
        candidates = [batch.x[i] + 0.3 * (a - b) for a in others for b in others]
        assert any(torch.allclose(view, candidate, rtol=0, atol=1e-12) for candidate in candidates)


def test_difference_takes_every_pair_of_other_samples_equally_often() -> None:
    torch.manual_seed(0)
    moves = torch.stack([add_difference(unit_vectors(5).x, 1.0) - torch.eye(5) for _ in range(2000)])
    # Sample 0 moves towards e_j and away from e_k: 12 ordered pairs of the four others, when j and k differ.
    codes = [(int(move.argmax()), int(move.argmin())) for move in moves[:, 0] if bool((move != 0).any())]
    counts = {code: codes.count(code) for code in set(codes)}
    assert len(codes) > 1000
    assert len(counts) == 12
    assert chisquare(list(counts.values())).pvalue > 1e-4


def ratio_of(view: Any) -> tuple[Any, float]:
    """The transform behind a view of MODALS, and how far it goes."""
    return view.function, view.ratio


def make_site() -> Site:
    encoder = MLPEncoder((2,), hidden=2, out_features=2)
    return Site(torch.ones(2), torch.zeros(4, 2), encoder, head_hidden=2, head_features=2, batch_size=2)


def test_modals_hands_each_ratio_to_its_transform() -> None:
    views = Modals.build(make_site(), interpolation=0.1, extrapolation=0.2, gaussian=0.3, difference=0.4)
    kinds = [ratio_of(view) for view in views]
    expected = {interpolate: 0.1, extrapolate: 0.2, add_batch_noise: 0.3, add_difference: 0.4}
    assert kinds == list(expected.items())
