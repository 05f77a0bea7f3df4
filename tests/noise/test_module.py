from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.noise import PiNoise
from pinoise.noise.sigma import GLOBAL_RATE, SMALLEST_SCALE

DISTRIBUTIONS = ["gaussian", "uniform"]
MEANS = ["zero", "learned"]
POSITIVES = ["softplus", "abs", "fixed-entropy"]
SETTINGS: list[dict[str, Any]] = [
    {"distribution": distribution, "mean": mean, "positive": positive, "normalize": normalize}
    for distribution, mean, positive, normalize in product(DISTRIBUTIONS, MEANS, POSITIVES, [None, 0.7])
]
DISTRIBUTION_AND_MEAN = list(product(DISTRIBUTIONS, MEANS))
DRAWS = 20_000


def slow_sample(noise: PiNoise, x: Tensor, draw: Tensor, *, mean: str) -> np.ndarray:
    """ε of vectors from the generator's output and a base draw, one entry at a time."""
    raw = noise.generator(x).detach().double().numpy()
    unit = noise.feature_scale.double().numpy()
    initial = noise.initial_scale.tolist()
    live = [j for j in range(x.shape[1]) if unit[j] > 0]
    level = sum(math.log(initial[j]) for j in live) / len(live)
    result = np.zeros(tuple(x.shape))
    for i in range(len(x)):
        starts = {j: math.atanh((math.log(initial[j]) - level) / 2) * 2 / 3 for j in live}
        bounded = {j: 2 * math.tanh(3 * (raw[i, 0, j] + starts[j]) / 2) for j in live}
        for j in live:
            s = initial[j]
            if noise.positive == "softplus":
                scale = math.log1p(math.exp(raw[i, 0, j] + math.log(math.exp(s) - 1)))
            elif noise.positive == "abs":
                scale = abs(raw[i, 0, j] + s)
            else:
                scale = math.exp(bounded[j] - sum(bounded.values()) / len(live) + level)
            n = float(draw[i, j])
            base = n if noise.distribution == "gaussian" else 2 * n - 1
            result[i, j] = (raw[i, 1, j] if mean == "learned" else 0) + scale * base
        if noise.normalize is not None:
            result[i] *= noise.normalize / math.sqrt(sum(result[i, j] ** 2 for j in live) / len(live))
        result[i] *= unit
    return result


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_sample_agrees_with_one_entry_at_a_time(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    unit = torch.tensor([1.0, 0.0, 2.0, 0.5, 10.0])
    initial = torch.tensor([0.4, 100.0, 0.2, 1.1, 0.4])
    noise = PiNoise(5, hidden=6, initial_scale=initial, feature_scale=unit, **settings)
    x = torch.randn(4, 5)
    torch.manual_seed(1)
    draw = torch.randn(4, 5) if settings["distribution"] == "gaussian" else torch.rand(4, 5)
    torch.manual_seed(1)
    sample = noise.sample(x).detach().numpy()
    np.testing.assert_allclose(sample, slow_sample(noise, x, draw, mean=settings["mean"]), atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_gradient_through_a_sample_agrees_with_finite_differences(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    unit = torch.tensor([1.0, 0.0, 2.0])
    outputs = 2 if settings["mean"] == "learned" else 1
    generator = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3 * outputs))
    noise = PiNoise(3, generator=generator, initial_scale=0.4, feature_scale=unit, **settings).double()
    names, values = zip(*noise.named_parameters(), strict=True)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def noisy(x: Tensor, *values: Tensor) -> Tensor:
        torch.manual_seed(1)
        result: Tensor = torch.func.functional_call(noise, dict(zip(names, values, strict=True)), (x,))
        return result

    assert torch.autograd.gradcheck(noisy, (x, *values))
    gradients = torch.autograd.grad(noisy(x, *values).square().sum(), values)
    assert all(bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize(("distribution", "mean"), DISTRIBUTION_AND_MEAN)
@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 2, 2)])
def test_draws_have_the_stated_mean_and_scale(distribution: Any, mean: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    unit = torch.tensor([0.1, 1.0, 3.0, 0.0]).reshape(shape)
    noise = PiNoise(shape, distribution=distribution, mean=mean, hidden=8, feature_scale=unit)
    x = 3 * torch.randn(3, *shape)
    with torch.no_grad():
        sample, mu, scale = noise.sample(x, draws=DRAWS), noise.mean(x), noise.scale(x)
    assert sample.shape == (DRAWS, 3, *shape)
    assert mu.shape == scale.shape == x.shape
    deviation = scale if distribution == "gaussian" else scale / math.sqrt(3)
    # Five standard errors of the estimates; the uniform's are smaller.
    assert bool(((sample.mean(0) - mu).abs() <= 5 * deviation / math.sqrt(DRAWS) + 1e-7).all())
    assert bool(((sample.std(0) - deviation).abs() <= 5 * deviation / math.sqrt(2 * DRAWS) + 1e-7).all())
    assert bool((scale[0] != scale[1]).any())  # the noise depends on x
    if distribution == "uniform":
        assert bool(((sample - mu).abs() <= scale * (1 + 1e-6) + 1e-6).all())
        assert bool(((sample - mu).abs().amax(0) >= 0.99 * scale).all())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_draws_samples_and_features_are_independent(distribution: Any) -> None:
    torch.manual_seed(0)
    noise = PiNoise(3, distribution=distribution, hidden=8)
    with torch.no_grad():
        sample = noise.sample(torch.randn(2, 3), draws=DRAWS).flatten(1).double()  # (draws, 6)
    together = torch.cat([sample[:-1], sample[1:]], dim=1)  # every entry beside the next draw's
    correlation = torch.corrcoef(together.T)
    off_diagonal = correlation - torch.eye(12)
    assert float(off_diagonal.abs().max()) < 5 / math.sqrt(DRAWS)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_dead_features_get_neither_noise_nor_mean(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    unit = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    noise = PiNoise((2, 2), hidden=6, feature_scale=unit, **settings)
    x = torch.randn(50, 2, 2)
    dead = unit == 0
    for value in (noise.sample(x), noise.scale(x), noise.relative_scale(x), noise.mean(x)):
        assert bool((value[:, dead] == 0).all())
    assert torch.equal(noise(x)[:, dead], x[:, dead])
    assert bool((noise.sample(x)[:, ~dead] != 0).all())


def test_a_vanishing_scale_is_held_at_the_floor() -> None:
    class Vanishing(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.full_like(x, -1000.0)

    noise = PiNoise(4, generator=Vanishing())
    assert noise.relative_scale(torch.zeros(2, 4)).unique().tolist() == pytest.approx([SMALLEST_SCALE])


@pytest.mark.parametrize(("distribution", "mean"), DISTRIBUTION_AND_MEAN)
def test_the_scale_and_mean_of_normalised_noise_are_what_its_draws_have(distribution: Any, mean: Any) -> None:
    torch.manual_seed(1)
    unit = torch.linspace(0.5, 2, 400)
    noise = PiNoise(
        400, distribution=distribution, mean=mean, hidden=64, initial_scale=0.05, feature_scale=unit, normalize=0.7
    )
    x = torch.randn(3, 400)
    with torch.no_grad():
        draws, mu, scale = noise.sample(x, draws=3000), noise.mean(x), noise.scale(x)
    deviation = scale if distribution == "gaussian" else scale / math.sqrt(3)
    torch.testing.assert_close(draws.std(dim=0).mean(dim=1), deviation.mean(dim=1), rtol=0.02, atol=0)
    assert bool(((draws.mean(dim=0) - mu).abs() <= 5 * deviation / math.sqrt(3000) + 0.01 * mu.abs()).all())
    assert (mean == "learned") == bool((mu.abs() > 10 * deviation / math.sqrt(3000)).any())  # not lost in chance


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_views_are_the_samples_with_two_draws_of_one_pass(shape: tuple[int, ...]) -> None:
    noise, x = PiNoise(shape, hidden=4), torch.randn(5, *shape)
    passes: list[int] = []
    noise.generator.register_forward_hook(lambda *_: passes.append(1))
    torch.manual_seed(1)
    first, second = noise.views(x)
    assert len(passes) == 1
    torch.manual_seed(1)
    one, other = noise.draw(x, 2)
    assert torch.equal(first, x + one.epsilon)
    assert torch.equal(second, x + other.epsilon)
    assert bool((first != second).all())


@pytest.mark.parametrize(
    ("generator", "times"), [("global", GLOBAL_RATE), ("mlp", 1), ("shared", 1), (nn.Linear(3, 3), 1)]
)
def test_psi_is_one_group_at_the_rate_that_suits_its_generator(generator: Any, times: int) -> None:
    noise = PiNoise(3, generator=generator, encoder=nn.Linear(3, 4))
    (group,) = noise.param_groups(0.02)
    assert GLOBAL_RATE == 10
    assert group["lr"] == pytest.approx(0.02 * times)
    assert [id(parameter) for parameter in group["params"]] == [id(parameter) for parameter in noise.parameters()]
    torch.optim.Adam(noise.param_groups(0.02), lr=1.0)


def test_noise_that_does_not_learn_has_no_group_for_an_optimiser() -> None:
    assert PiNoise(3, generator="constant").param_groups(0.1) == []
    frozen = PiNoise(3, generator="global")
    frozen.requires_grad_(False)
    assert frozen.param_groups(0.1) == []


def slow_regularizer(noise: PiNoise, x: Tensor) -> float:
    """λ times the mean over samples and live features of (log σ − log r)², one entry at a time."""
    scale, live = noise.relative_scale(x).detach().double(), noise.feature_scale > 0
    squares = [
        (math.log(float(scale[(i, *j)])) - math.log(float(noise.initial_scale[j]))) ** 2
        for i in range(len(x))
        for j in np.ndindex(*noise.shape)
        if bool(live[j])
    ]
    return noise.weight * sum(squares) / len(squares)


@pytest.mark.parametrize("generator", ["mlp", "shared", "global", "constant"])
@pytest.mark.parametrize("positive", POSITIVES)
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_the_regularizer_is_the_weighted_distance_of_the_scale_from_its_initial_value(
    generator: str, positive: Any, shape: tuple[int, ...]
) -> None:
    class Encoder(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.flatten(1))

    unit = torch.tensor([0.5, 0.0, 2.0, 1.0]).reshape(shape)
    initial = torch.tensor([0.3, 5.0, 0.6, 1.2]).reshape(shape)
    noise = PiNoise(
        shape,
        generator=generator,
        encoder=Encoder(4, 3),
        positive=positive,
        hidden=8,
        feature_scale=unit,
        initial_scale=initial,
        weight=0.7,
    )
    x = torch.randn(6, *shape)
    assert float(noise.regularizer(x).detach()) == pytest.approx(slow_regularizer(noise, x), rel=1e-4, abs=1e-10)
    with torch.no_grad():
        for parameter in noise.parameters():
            parameter.normal_()
    distance = noise.regularizer(x)
    assert float(distance.detach()) == pytest.approx(slow_regularizer(noise, x), rel=1e-4, abs=1e-10)
    if generator == "constant":
        assert float(distance) == pytest.approx(0, abs=1e-10)
    else:
        assert float(distance.detach()) > 0.01
        gradients = torch.autograd.grad(distance, list(noise.parameters()))
        assert all(bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distribution": "gausian"}, r"unknown distribution 'gausian': did you mean 'gaussian'\?.*gaussian, uniform"),
        ({"positive": "exp"}, r"unknown positive map 'exp'.* Allowed: softplus, abs, fixed-entropy"),
        ({"mean": "learnt"}, r"unknown mean 'learnt': did you mean 'learned'\? Allowed: zero, learned"),
        ({"generator": "mpl"}, r"unknown generator 'mpl': did you mean 'mlp'\?"),
        ({"generator": "shared"}, r"given none: pass encoder="),
        ({"generator": "auto"}, r"generator 'auto' leaves the choice to an objective: name one here"),
        ({"generator": "no.such:thing"}, r"generator 'no.such:thing' cannot be found .*: write package.module:name"),
        ({"initial_scale": 0.0}, r"initial_scale is 0.0: it must be a finite number of at least 1e-06"),
        ({"initial_scale": math.inf}, r"initial_scale is inf: it must be a finite number of at least 1e-06"),
        ({"initial_scale": math.nan}, r"initial_scale is nan: it must be a finite number of at least 1e-06"),
        ({"normalize": 0.0}, r"normalize is 0.0: it must be a positive number, or None"),
        ({"normalize": math.nan}, r"normalize is nan: it must be a positive number, or None"),
        ({"hidden": 0}, r"hidden of the generator is 0: it must be from 1 to 65536"),
        ({"shape": 0}, r"shape is 0: every size of a sample must be at least 1"),
        ({"shape": ()}, r"shape is \(\): every size of a sample must be at least 1"),
        ({"shape": (3, -1)}, r"shape is \(3, -1\): every size of a sample must be at least 1"),
        (
            {"feature_scale": torch.ones(2)},
            r"feature_scale has shape \(2,\): it must be a number, or have shape \(3,\)",
        ),
        (
            {"feature_scale": torch.tensor([1.0, -2.0, 1.0])},
            r"feature_scale is -2.0: it must be a finite number of at least 0",
        ),
    ],
)
def test_a_wrong_argument_is_refused_with_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PiNoise(**({"shape": 3, "hidden": 4} | arguments))


@pytest.mark.parametrize("call", ["forward", "sample", "views", "scale", "relative_scale", "mean", "regularizer"])
def test_samples_of_another_shape_are_refused(call: str) -> None:
    noise = PiNoise((2, 3), hidden=4)
    with pytest.raises(UserError, match=r"samples have shape \(3, 2\): this noise was made for \(2, 3\)"):
        getattr(noise, call)(torch.zeros(4, 3, 2))


def test_a_generator_that_returns_too_little_is_refused() -> None:
    noise = PiNoise(3, mean="learned", generator=nn.Linear(3, 3))
    with pytest.raises(UserError, match=r"returned shape \(4, 3\) for 4 samples: it must return \(4, 2, 3\)"):
        noise(torch.zeros(4, 3))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": torch.tensor([[0.0, float("nan")], [1.0, 2.0]])}, "data has an entry that is nan or infinite"),
        ({"neighbours": 2.5}, "neighbours is 2.5: give a whole number"),
        ({"neighbours": -1}, "neighbours is -1: give a whole number"),
    ],
)
def test_noise_along_the_data_names_the_argument_that_is_wrong(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        PiNoise.along(**{"data": torch.randn(20, 2), **changes})
