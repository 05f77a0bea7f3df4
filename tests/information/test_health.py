from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.information.health import (
    EmbeddingMetrics,
    HealthFlag,
    NoiseMetrics,
    check_health,
    measure_embedding,
    measure_noise,
)

HEALTHY_NOISE = NoiseMetrics(sigma_mean=0.8, sigma_median=0.7, participation=0.8, cleanest=0.4)
HEALTHY_EMBEDDING = EmbeddingMetrics(effective_rank=12.0, possible_rank=99, spread=0.7)
FLOOR = math.log(2 * 100 - 1)


def names(
    *,
    noise: NoiseMetrics | None = HEALTHY_NOISE,
    embedding: EmbeddingMetrics = HEALTHY_EMBEDDING,
    loss: float = 1.5,
    loss_floor: float | None = FLOOR,
) -> list[str]:
    return [flag.name for flag in check_health(noise=noise, embedding=embedding, loss=loss, loss_floor=loss_floor)]


def only_flag(
    *,
    noise: NoiseMetrics | None = HEALTHY_NOISE,
    embedding: EmbeddingMetrics = HEALTHY_EMBEDDING,
    loss: float = 1.5,
    loss_floor: float | None = FLOOR,
) -> HealthFlag:
    (flag,) = check_health(noise=noise, embedding=embedding, loss=loss, loss_floor=loss_floor)
    return flag


def slow_noise(sigma: np.ndarray) -> NoiseMetrics:
    """The four figures of live features (m, d), with numpy, whose median of an even number is not torch's."""
    feature = sigma.mean(0)
    participation = feature.sum() ** 2 / (len(feature) * (feature**2).sum())
    return NoiseMetrics(sigma.mean(), np.median(sigma), participation, feature.min() / np.median(feature))


def test_noise_figures_agree_with_numpy_and_leave_dead_features_out() -> None:
    sigma, live = torch.rand(9, 3, 5), torch.ones(3, 5, dtype=torch.bool)
    live[0, 1] = live[2, 2] = False
    sigma[:, ~live] = 1000
    assert measure_noise(sigma, live) == pytest.approx(slow_noise(sigma[:, live].double().numpy()), rel=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_participation_survives_scales_whose_square_does_not(size: float) -> None:
    assert measure_noise(torch.full((4, 10), size), torch.ones(10, dtype=torch.bool)).participation == pytest.approx(1)


def test_no_noise_at_all_is_measured_as_0_without_a_warning_and_only_shrinks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noise = measure_noise(torch.zeros(4, 3), torch.ones(3, dtype=torch.bool))
    assert noise == NoiseMetrics(0, 0, 0, 0)
    assert names(noise=noise) == ["shrink"]


def test_noise_without_a_live_feature_or_with_another_number_of_them_is_refused() -> None:
    with pytest.raises(UserError, match="no feature varies"):
        measure_noise(torch.ones(4, 3), torch.zeros(3, dtype=torch.bool))
    with pytest.raises(UserError, match="σ has 3 features and the mask of live ones 4"):
        measure_noise(torch.ones(4, 3), torch.ones(4, dtype=torch.bool))


def test_effective_rank_agrees_with_the_entropy_of_numpys_singular_values() -> None:
    z = torch.randn(30, 7) * torch.arange(1.0, 8) + 2
    unit = z.double().numpy() / np.linalg.norm(z.double().numpy(), axis=1, keepdims=True)
    share = np.linalg.svd(unit - unit.mean(0), compute_uv=False)
    share /= share.sum()
    metrics = measure_embedding(z)
    assert metrics.effective_rank == pytest.approx(math.exp(-(share * np.log(share)).sum()), rel=1e-4)
    assert metrics.spread == pytest.approx(math.sqrt(7) * unit.std(0).mean(), rel=1e-4)


def collapsed_embeddings() -> dict[str, Tensor]:
    one, line = torch.randn(1, 64), torch.randn(1, 64)
    return {
        "equal": one.expand(100, 64),
        "equal but for their length": one * torch.rand(100, 1).add(0.1),
        "zero": torch.zeros(100, 64),
        "nearly equal": one + 0.01 * torch.randn(100, 64),
        "on a line through 0": torch.randn(100, 1) * one,
        "on a line elsewhere": one + 0.3 * torch.randn(100, 1) * line,
    }


@pytest.mark.parametrize("case", collapsed_embeddings())
def test_collapsed_embeddings_are_flagged(case: str) -> None:
    flag = only_flag(embedding=measure_embedding(collapsed_embeddings()[case]))
    assert flag.name == "embedding-collapse"
    assert ("lie along one line" if "line" in case else "are nearly equal") in flag.meaning


def network(features: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU()
    )


@pytest.mark.parametrize(("rows", "features"), [(100, 13), (100, 2), (100, 1), (10, 13), (3, 13), (2, 13)])
def test_embeddings_of_small_data_are_not_flagged(rows: int, features: int) -> None:
    with torch.no_grad():
        z = network(features)(torch.randn(rows, features))
    assert names(embedding=measure_embedding(z)) == []


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_embeddings_that_are_not_finite_give_nan_and_are_flagged(bad: float) -> None:
    z = torch.randn(10, 4)
    z[3, 2] = bad
    embedding = measure_embedding(z)
    assert math.isnan(embedding.effective_rank)
    assert only_flag(embedding=embedding).name == "non-finite"


@pytest.mark.parametrize("shape", [(10,), (1, 4), (3, 0), (3, 4, 5)])
def test_embeddings_of_a_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="embeddings have the shape"):
        measure_embedding(torch.zeros(shape))


def test_healthy_training_raises_nothing() -> None:
    noise = measure_noise(torch.rand(50, 13) + 0.2, torch.ones(13, dtype=torch.bool))
    assert names(noise=noise, embedding=measure_embedding(torch.randn(50, 32))) == []
    assert names(noise=None) == []
    assert names(loss_floor=None) == []


def test_vanished_noise_shrinks() -> None:
    flag = only_flag(noise=measure_noise(torch.full((5, 8), 0.012), torch.ones(8, dtype=torch.bool)))
    assert flag.name == "shrink"
    assert "0.012" in flag.meaning
    assert "'supported'" in flag.meaning


def test_noise_on_few_features_is_parking() -> None:
    sigma = torch.full((5, 100), 0.1)
    sigma[:, :4] = 50
    flag = only_flag(noise=measure_noise(sigma, torch.ones(100, dtype=torch.bool)))
    assert flag.name == "parking"
    assert "0.044" in flag.meaning


def test_a_feature_without_noise_is_a_clean_channel_unless_all_shrink() -> None:
    sigma = torch.ones(5, 8)
    sigma[:, 2] = 0.01
    live = torch.ones(8, dtype=torch.bool)
    flag = only_flag(noise=measure_noise(sigma, live))
    assert flag.name == "clean-channel"
    assert "0.01" in flag.meaning
    assert names(noise=measure_noise(sigma / 100, live)) == ["shrink"]


def test_a_dead_feature_is_no_clean_channel() -> None:
    sigma, live = torch.ones(5, 8), torch.ones(8, dtype=torch.bool)
    sigma[:, 2] = 0
    live[2] = False
    assert names(noise=measure_noise(sigma, live)) == []


@pytest.mark.parametrize("share", [0.995, 1.0, 1.3])
def test_the_loss_of_guessing_is_flagged(share: float) -> None:
    flag = only_flag(loss=share * FLOOR)
    assert flag.name == "loss-floor"
    assert f"{FLOOR:.3g}" in flag.meaning


def test_a_loss_below_that_of_guessing_is_not_flagged() -> None:
    assert names(loss=0.98 * FLOOR) == []
    assert names(loss=2 * FLOOR, loss_floor=None) == []


@pytest.mark.parametrize("floor", [FLOOR, None])
def test_a_loss_of_nearly_0_is_flagged(floor: float | None) -> None:
    flag = only_flag(loss=2e-4, loss_floor=floor)
    assert flag.name == "loss-zero"
    assert "0.0002" in flag.meaning
    assert names(loss=0.002, loss_floor=floor) == []


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_the_only_flag_and_is_named(bad: float) -> None:
    flag = only_flag(loss=bad, noise=HEALTHY_NOISE._replace(sigma_median=0.0))
    assert flag.name == "non-finite"
    assert f"loss is {bad}" in flag.meaning
    assert "sigma mean is" in only_flag(noise=HEALTHY_NOISE._replace(sigma_mean=bad)).meaning


def test_several_signs_are_all_reported_and_explained_as_fragments_of_a_sentence() -> None:
    flags = check_health(
        noise=NoiseMetrics(1.0, 0.01, 0.1, 0.0), embedding=EmbeddingMetrics(1.0, 50, 0.01), loss=FLOOR, loss_floor=FLOOR
    )
    assert [flag.name for flag in flags] == ["shrink", "parking", "embedding-collapse", "loss-floor"]
    assert all(not flag.meaning.endswith(".") and flag.meaning[0].islower() for flag in flags)
