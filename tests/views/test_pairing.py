from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor, nn

from pinoise.choices import PAIRINGS
from pinoise.errors import UserError
from pinoise.noise import Noise, PiNoise
from pinoise.views import Batch, Identity, Neighbour, Pairing, PiNoiseView, View
from pinoise.views.base import choose

M = 9000
UNIT = torch.tensor([0.5, 0.0, 3.0])


class Shift(View):
    """a(x) = x + a constant, which shows in the result that it was applied."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, batch: Batch) -> Batch:
        return batch.moved(batch.x + self.by)


class Table(nn.Module):
    """A generator with parameters of its own for every sample, which says in its first feature who it is."""

    def __init__(self, samples: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(samples, dim))

    def forward(self, x: Tensor) -> Tensor:
        return self.table[x[:, 0].round().long()]


def zeros(m: int = M, shape: tuple[int, ...] = (2,)) -> Batch:
    return Batch(torch.zeros(m, *shape), torch.arange(m) + 7)


def small_noise(shape: tuple[int, ...] = (2,)) -> PiNoiseView:
    return PiNoiseView(PiNoise(shape, hidden=8, initial_scale=0.1))


def count_passes(view: PiNoiseView) -> list[Tensor]:
    """Record what the generator is shown."""
    seen: list[Tensor] = []
    view.noise.generator.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    return seen


def which(view: Batch) -> np.ndarray:
    """The shift that every sample received, in hundreds; noise is far smaller than that."""
    return (view.x[:, 0] / 100).round().long().numpy()


def drew(view: Batch) -> Tensor:
    assert view.drew is not None
    return view.drew


def noise_of(view: Batch) -> Tensor:
    """ε of the view."""
    assert view.noise is not None
    return view.noise.epsilon


def pi_batch(m: int) -> Batch:
    return Batch(torch.randn(m, 3, generator=torch.Generator().manual_seed(0)), torch.arange(m) + 50)


def test_pi_view_is_the_sample_plus_the_noise_that_it_reports() -> None:
    noise, batch = PiNoise(3, hidden=8, feature_scale=UNIT), pi_batch(4)
    torch.manual_seed(1)
    view = PiNoiseView(noise)(batch)
    torch.manual_seed(1)
    expected = noise.sample(batch.x)
    assert view.noise is not None
    assert torch.equal(view.noise.epsilon, expected)
    torch.testing.assert_close(view.noise.scale, noise.relative_scale(batch.x))
    assert torch.equal(view.x, batch.x + expected)
    assert view.drew is None  # everybody drew


@pytest.mark.parametrize("name", ["identity-noise", "noise-noise", "sampled"])
def test_every_pairing_draws_its_noise_once_in_a_step(name: Any) -> None:
    bank, rows = torch.randn(30, 3), torch.arange(30)
    noise = PiNoise.along(bank)
    pairing = Pairing(name, noise=PiNoiseView(noise))
    assert noise.support is not None
    for step in range(3):
        pairing(Batch(bank, rows))
        assert int(noise.support.draws) == step + 1
    pairing.eval()(Batch(bank, rows))
    assert int(noise.support.draws) == 3


@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 3, 2)])
@pytest.mark.parametrize("noisy", [0, 1, 2])
@pytest.mark.parametrize("some", [False, True], ids=["everybody drew", "some drew"])
@pytest.mark.parametrize("scales", [1, 12])
def test_choose_agrees_with_one_sample_at_a_time(shape: tuple[int, ...], noisy: int, some: bool, scales: int) -> None:
    torch.manual_seed(0)
    m = 12
    rows = torch.arange(m)
    views = [Batch(torch.randn(m, *shape), rows) for _ in range(3)]
    noise = Noise(torch.randn(m, *shape), torch.rand(scales, *shape))
    views[noisy] = Batch(views[noisy].x, rows, noise, torch.rand(m) < 0.5 if some else None)
    choice = torch.arange(m) % 3
    result = choose(views, choice)
    for i in range(m):
        view = views[int(choice[i])]
        has_noise = view.noise is not None and (view.drew is None or bool(view.drew[i]))
        assert torch.equal(result.x[i], view.x[i])
        assert bool(drew(result)[i]) == has_noise
        assert torch.equal(noise_of(result)[i], noise_of(view)[i] if has_noise else torch.zeros(shape))
    assert torch.equal(result.rows, rows)
    assert result.noise is not None
    assert result.noise.scale is noise.scale


def test_identity_noise_compares_x_with_its_noisy_self() -> None:
    batch, noise = zeros(5), small_noise()
    torch.manual_seed(0)
    first, second = Pairing("identity-noise", noise=noise)(batch)
    assert first is batch
    torch.manual_seed(0)
    assert torch.equal(second.x, noise(batch).x)
    assert second.drew is None


def test_noise_noise_draws_twice_from_one_pass() -> None:
    torch.manual_seed(0)
    noise = small_noise()
    passes = count_passes(noise)
    first, second = Pairing("noise-noise", noise=noise)(zeros())
    assert len(passes) == 1
    pair = torch.stack([noise_of(first).detach().flatten(), noise_of(second).detach().flatten()])
    assert abs(float(torch.corrcoef(pair)[0, 1])) < 5 / math.sqrt(2 * M)
    assert torch.equal(first.x, noise_of(first))


def test_sampled_draws_both_sides_uniformly_and_independently() -> None:
    torch.manual_seed(0)
    pairing = Pairing("sampled", noise=small_noise(), augmentations=[Shift(100.0), Shift(200.0)])
    first, second = pairing(zeros())
    # π leaves x near 0, and the two augmentations leave it at 100 and 200: nine pairs, all equally likely.
    pairs = 3 * which(first) + which(second)
    counts = np.bincount(pairs, minlength=9)
    assert len(counts) == 9
    assert chisquare(counts).pvalue > 1e-4
    assert torch.equal(drew(first), torch.tensor(which(first) == 0))
    assert torch.equal(drew(second), torch.tensor(which(second) == 0))


def test_sampled_without_augmentations_uses_the_original_as_the_other_one() -> None:
    torch.manual_seed(0)
    views = Pairing("sampled", noise=small_noise())(zeros())
    for view in views:
        untouched = (view.x == 0).all(1)
        assert torch.equal(untouched, ~drew(view))
    pairs = 2 * drew(views[0]).long() + drew(views[1]).long()
    assert chisquare(np.bincount(pairs.numpy(), minlength=4)).pvalue > 1e-4


def test_sampled_reports_the_noise_of_those_who_drew_it_and_zero_for_the_others() -> None:
    torch.manual_seed(0)
    batch = Batch(torch.randn(40, 2, 3), torch.arange(40) + 7)
    noise = small_noise((2, 3))
    passes = count_passes(noise)
    first, second = Pairing("sampled", noise=noise, augmentations=[Shift(100.0)])(batch)
    assert len(passes) == 1
    both = drew(first) & drew(second)
    assert bool(both.any())
    assert bool((noise_of(first)[both] != noise_of(second)[both]).all())  # two draws, not one used twice
    for view in (first, second):
        assert torch.equal(view.rows, batch.rows)
        for i in range(40):
            if drew(view)[i]:
                assert bool((noise_of(view)[i] != 0).all())
                torch.testing.assert_close(view.x[i], batch.x[i] + noise_of(view)[i])
            else:
                assert bool((noise_of(view)[i] == 0).all())
                assert torch.equal(view.x[i], batch.x[i] + 100.0)


def test_sampled_sends_gradient_to_psi_only_from_those_who_drew() -> None:
    torch.manual_seed(0)
    m = 60
    generator = Table(m, 3)
    x = torch.cat([torch.arange(m)[:, None], torch.randn(m, 2)], dim=1)
    pairing = Pairing("sampled", noise=PiNoiseView(PiNoise(3, generator=generator)), augmentations=[Shift(100.0)])
    first, second = pairing(Batch(x, torch.arange(m)))
    for views in ((first,), (second,), (first, second)):
        loss = sum((view.x.square().sum() for view in views), torch.zeros(()))
        (gradient,) = torch.autograd.grad(loss, generator.table, retain_graph=True)
        someone = torch.stack([drew(view) for view in views]).any(0)
        assert torch.equal((gradient != 0).any(1), someone)
        assert 0 < int(someone.sum()) < m


def test_sampled_gives_psi_a_zero_gradient_where_nobody_drew() -> None:
    # A missing gradient would leave the other processes of a distributed run waiting for it.
    noise = small_noise()
    pairing = Pairing("sampled", noise=noise, augmentations=[Shift(100.0)])
    for seed in range(50):
        torch.manual_seed(seed)
        first, second = pairing(zeros(1))
        if not drew(first).any() and not drew(second).any():
            break
    else:
        pytest.fail("one sample drew the noise fifty times in a row")
    gradients = torch.autograd.grad((first.x + second.x).sum(), list(noise.parameters()))
    assert all(bool((gradient == 0).all()) for gradient in gradients)


def test_compose_adds_noise_on_top_of_the_augmented_sample() -> None:
    torch.manual_seed(0)
    batch = Batch(torch.randn(20, 2), torch.arange(20))
    noise = small_noise()
    seen = count_passes(noise)
    first, second = Pairing("compose", noise=noise, augmentations=[Shift(100.0)])(batch)
    assert len(seen) == 2
    for view, shown in zip((first, second), seen, strict=True):
        assert torch.equal(shown, batch.x + 100.0)  # the noise is made for a(x), not for x
        assert torch.equal(view.x, batch.x + 100.0 + noise_of(view))
        assert view.drew is None  # everybody
    assert not torch.equal(noise_of(first), noise_of(second))


@pytest.mark.parametrize("kind", ["along", "neighbour"])
def test_compose_refuses_noise_that_would_undo_the_augmentation(kind: str) -> None:
    data = torch.randn(20, 3)
    along = PiNoise.along(data)
    assert along.support is not None
    noise: View = PiNoiseView(along) if kind == "along" else Neighbour(along.support)
    with pytest.raises(UserError, match=r"'compose' adds noise to augmented samples.*choose 'sampled'"):
        Pairing("compose", noise=noise, augmentations=[Shift(100.0)])
    Pairing("sampled", noise=noise, augmentations=[Shift(100.0)])


@pytest.mark.parametrize("name", ["identity-noise", "noise-noise", "sampled", "compose"])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 3, 2)])
def test_every_pairing_takes_every_rank_and_follows_the_seed(name: Any, shape: tuple[int, ...]) -> None:
    augmentations = [Identity(), Shift(100.0)] if name in ("sampled", "compose") else []
    pairing = Pairing(name, noise=small_noise(shape), augmentations=augmentations)
    batch = zeros(6, shape)
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append(pairing(batch))
    for a, b in zip(*runs, strict=True):
        assert a.x.shape == (6, *shape)
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.rows, batch.rows)


@pytest.mark.parametrize(
    ("name", "noisy", "augmentations", "message"),
    [
        ("sample", True, 0, r"unknown pairing 'sample': did you mean 'sampled'\? Allowed: " + ", ".join(PAIRINGS)),
        ("identity-noise", False, 0, r"'identity-noise' needs a noise: .*'sampled' or 'compose'"),
        ("noise-noise", False, 0, r"'noise-noise' needs a noise: .*'sampled' or 'compose'"),
        ("identity-noise", True, 2, r"'identity-noise' takes no other augmentations and was given 2: .*'sampled'"),
        ("noise-noise", True, 1, r"'noise-noise' takes no other augmentations and was given 1: .*'sampled'"),
        ("compose", True, 0, r"'compose' adds noise on top of augmentations: give at least one"),
        ("compose", False, 0, r"'compose' adds noise on top of augmentations: give at least one"),
        ("sampled", False, 0, r"'sampled' has nothing to draw from: give a noise or augmentations"),
    ],
)
def test_a_pairing_that_cannot_be_made_is_refused(name: Any, noisy: bool, augmentations: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Pairing(name, noise=small_noise() if noisy else None, augmentations=[Identity()] * augmentations)


def test_a_noise_that_is_not_wrapped_in_a_view_is_refused() -> None:
    noise: Any = PiNoise(2, hidden=4)
    with pytest.raises(UserError, match=r"made of views and was given PiNoise: wrap a PiNoise in PiNoiseView"):
        Pairing("noise-noise", noise=noise)
