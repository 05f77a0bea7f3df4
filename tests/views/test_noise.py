from __future__ import annotations

import math

import torch
from torch import nn

from pinoise.noise import PiNoise, Support
from pinoise.views import Batch, GaussianNoise, PiNoiseView

UNIT = torch.tensor([0.5, 0.0, 3.0])


def make_batch(m: int) -> Batch:
    return Batch(torch.randn(m, 3, generator=torch.Generator().manual_seed(0)), torch.arange(m) + 50)


def test_pi_view_is_the_sample_plus_the_noise_that_it_reports() -> None:
    noise, batch = PiNoise(3, hidden=8, feature_scale=UNIT), make_batch(4)
    torch.manual_seed(1)
    view = PiNoiseView(noise)(batch)
    torch.manual_seed(1)
    expected = noise.sample(batch.x)
    assert view.noise is not None
    assert torch.equal(view.noise.epsilon, expected)
    torch.testing.assert_close(view.noise.scale, noise.relative_scale(batch.x))
    assert torch.equal(view.x, batch.x + expected)
    assert view.drew is None  # everybody drew


def test_pi_view_reaches_every_parameter_of_the_generator() -> None:
    torch.manual_seed(0)
    noise = PiNoise(3, hidden=16, mean="learned")
    loss = PiNoiseView(noise)(make_batch(8)).x.square().sum()
    assert all(bool((g != 0).any()) for g in torch.autograd.grad(loss, list(noise.parameters())))


def test_pi_view_draws_share_one_pass_and_are_independent() -> None:
    torch.manual_seed(0)
    noise = PiNoise(3, hidden=8)
    passes: list[int] = []
    noise.generator.register_forward_hook(lambda *_: passes.append(1))
    first, second = PiNoiseView(noise).draw(make_batch(20_000), 2)
    assert len(passes) == 1
    assert first.noise is not None
    assert second.noise is not None
    assert first.noise.scale is second.noise.scale
    pair = torch.stack([view.noise.epsilon.detach().flatten() for view in (first, second) if view.noise])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 5 / math.sqrt(60_000)


def test_pi_view_owns_the_noise() -> None:
    noise = PiNoise(3, hidden=8)
    assert list(PiNoiseView(noise).parameters()) == list(noise.parameters())
    assert PiNoiseView(noise).learned is noise


def test_pi_view_hands_rows_and_features_to_the_noise() -> None:
    bank = torch.randn(30, 3)
    encoder = nn.Linear(3, 4)
    support = Support(bank, numbers=torch.arange(30), rows=30, k=4)
    noise = PiNoise(3, generator="shared", encoder=encoder, support=support)
    rows, features = torch.tensor([4, 9, 17]), torch.randn(3, 4)
    torch.manual_seed(1)
    draws = PiNoiseView(noise).draw(Batch(bank[rows], rows, features=features), 2)
    torch.manual_seed(1)
    expected = noise.draw(bank[rows], 2, features=features, rows=rows)
    for draw, wanted in zip(draws, expected, strict=True):
        assert draw.noise is not None
        assert torch.equal(draw.noise.epsilon, wanted.epsilon)
        assert torch.equal(draw.x, bank[rows] + wanted.epsilon)


def test_pi_view_lets_the_neighbours_follow_its_scale() -> None:
    bank = torch.randn(30, 3)
    support = Support(bank, numbers=torch.arange(30), rows=30, k=4)
    view = PiNoiseView(PiNoise(3, generator="constant", initial_scale=0.5, support=support))
    view.before_step(1)
    assert support.metric.tolist() == [1.0] * 3
    view.before_step(0)
    torch.testing.assert_close(support.metric, torch.full((3,), 0.5))


def test_gaussian_noise_has_the_stated_deviation_and_spares_dead_features() -> None:
    torch.manual_seed(0)
    batch = make_batch(20_000)
    added = GaussianNoise(UNIT, sigma=0.7)(batch).x - batch.x
    assert bool((added[:, 1] == 0).all())
    deviation = 0.7 * UNIT
    assert bool((added.mean(0).abs() <= 5 * deviation / math.sqrt(20_000)).all())
    assert bool(((added.std(0) - deviation).abs() <= 5 * deviation / math.sqrt(40_000)).all())
    standard = added[:, UNIT > 0] / deviation[UNIT > 0]
    # The fourth moment of a normal variable is 3, of variance 96 in its estimate.
    assert bool(((standard**4).mean(0) - 3).abs().max() < 5 * math.sqrt(96 / 20_000))
    assert abs(float(torch.corrcoef(standard.T)[0, 1])) < 5 / math.sqrt(20_000)


def test_gaussian_noise_is_not_learned() -> None:
    view = GaussianNoise(UNIT)
    result = view(make_batch(4))
    assert result.noise is None
    assert list(view.parameters()) == []
    assert torch.equal(view.state_dict()["feature_scale"], UNIT)
