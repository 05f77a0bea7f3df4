from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from pinoise.views import Batch, Mixup
from pinoise.views.swap import shuffled


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
    unit_vectors = torch.eye(400, dtype=torch.float64)
    weights = Mixup(alpha=alpha)(Batch(unit_vectors, torch.arange(400))).x  # row i: every sample's weight in view i
    ratio = weights.diagonal()
    others = weights - torch.diag(ratio)
    assert bool((weights >= 0).all())
    torch.testing.assert_close(weights.sum(1), torch.ones(400, dtype=torch.float64))
    assert (others > 0).sum(1).tolist() == [1] * 400
    assert bool(((ratio > alpha) & (ratio < 1)).all())
    assert kstest(ratio.numpy(), "uniform", args=(alpha, 1 - alpha)).pvalue > 1e-4
