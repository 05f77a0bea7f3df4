from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.preprocessing import RobustScaler, StandardScaler

from pinoise import PiNDA, load_run
from pinoise.data.moments import has_heavy_tails
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer, auto_scaling
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training

IQR = 1.3489795  # of a normal distribution; the module has it to four digits


def amounts(rows: int = 600, features: int = 5) -> np.ndarray:
    return np.random.default_rng(0).lognormal(1.0, 2.0, (rows, features))


def test_it_is_arcsinh_between_two_scalers_of_scikit_learn() -> None:
    x = amounts()
    x[:, 3] = np.where(np.arange(len(x)) % 5 == 0, x[:, 3], 0)  # the quartiles are equal
    x[:, 4] = 7.0
    robust = RobustScaler().fit_transform(x) * IQR
    robust[:, 3] = x[:, 3] / np.median(x[x[:, 3] > 0, 3])
    expected = StandardScaler().fit_transform(np.arcsinh(robust))
    found = Standardizer.fit(x, scaling="compressed")
    np.testing.assert_allclose(found.apply(x), expected, atol=1e-4)
    assert found.live.tolist() == [True] * 4 + [False]
    np.testing.assert_array_equal(found.deviation, [1, 1, 1, 1, 0])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_batches_are_what_apply_gives(layout: Any) -> None:
    x = amounts() * (np.random.default_rng(1).random((600, 5)) < 0.5)
    found = Standardizer.fit(layout(x), scaling="compressed")
    chosen = torch.tensor([3, 599, 0])
    got = make_rows(layout(x), found)[chosen]
    np.testing.assert_allclose(got, Standardizer.fit(x, scaling="compressed").apply(x)[chosen.numpy()], atol=1e-5)


def test_undoing_gives_the_samples_back() -> None:
    x = amounts()
    x[:, 0] *= -1e6
    x[:, 1] = 7.0
    found = Standardizer.fit(x, scaling="compressed")
    np.testing.assert_allclose(found.undo(found.apply(x)), x, rtol=1e-10)


def test_units_are_those_of_a_small_step() -> None:
    x = amounts()
    found = Standardizer.fit(x, scaling="compressed")
    at = found.apply(x)
    step = found.undo(at + 1e-6) - found.undo(at - 1e-6)
    np.testing.assert_allclose(step / 2e-6, found.units(x), rtol=1e-5)


@pytest.mark.parametrize("share", [1.0, 0.2])
@pytest.mark.parametrize("outlier", [1e6, 1e11, 1e15])
def test_no_outlier_squeezes_the_other_rows(outlier: float, share: float) -> None:
    x = amounts() * (np.random.default_rng(1).random((600, 5)) < share)
    spoilt = x.copy()
    spoilt[3, 0] = outlier
    plain, other = (Standardizer.fit(each, scaling="compressed") for each in (x, spoilt))
    rest = np.arange(600) != 3
    np.testing.assert_allclose(other.scale, plain.scale, rtol=0.05)
    assert other.apply(spoilt)[rest, 0].std() > 0.1


def test_the_order_of_rows_does_not_decide() -> None:
    random = np.random.default_rng(0)
    x = np.empty((8192, 3))
    x[::2], x[1::2] = random.standard_normal((4096, 3)), random.lognormal(0, 2, (4096, 3))
    assert auto_scaling(x) == auto_scaling(random.permutation(x)) == "compressed"


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (amounts(), "compressed"),
        (np.random.default_rng(0).standard_normal((600, 5)), "features"),
        (np.random.default_rng(0).exponential(size=(600, 5)), "features"),
        (np.hstack([amounts(features=2), np.random.default_rng(0).standard_normal((600, 3))]), "features"),
        (np.hstack([amounts(features=3), np.random.default_rng(0).standard_normal((600, 3))]), "compressed"),
        (np.tile(np.array([[-1.0, 3.0]]), (600, 1)) * (np.arange(600) == 5)[:, None], "features"),  # two values each
    ],
)
def test_auto_compresses_where_half_of_the_features_have_heavy_tails(x: np.ndarray, expected: str) -> None:
    assert auto_scaling(x) == expected


def test_the_largest_numbers_are_judged_without_a_warning() -> None:
    x = np.random.default_rng(0).standard_normal((300, 2))
    x[0] = [np.finfo(np.float64).max, -np.finfo(np.float64).max]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert has_heavy_tails(x)
        assert not has_heavy_tails(x[1:] * 1e-160)


@pytest.fixture(scope="module")
def fitted() -> PiNDA:
    return PiNDA(4, hidden=16, epochs=3, batch_size=100, device="cpu", random_state=0).fit(amounts())


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")
def test_an_estimator_compresses_by_itself_and_goes_through_a_file(fitted: PiNDA, tmp_path: Path) -> None:
    x = amounts()
    standard = Standardizer.fit(x, scaling="compressed")
    np.testing.assert_allclose(fitted.transform(x)[:, :5], standard.apply(x), atol=1e-6)
    np.testing.assert_allclose(
        fitted.noise_scale(x, relative=False), fitted.noise_scale(x) * standard.units(x), rtol=1e-5
    )
    fitted.save(tmp_path / "m.safetensors")
    again = PiNDA.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(x), fitted.transform(x))
    np.testing.assert_array_equal(again.augment(x, random_state=1), fitted.augment(x, random_state=1))


def test_noisy_copies_of_amounts_have_the_tails_of_amounts(fitted: PiNDA) -> None:
    x = amounts()
    noisy = fitted.augment(x, random_state=1)
    assert np.isfinite(noisy).all()
    # Large amounts move by more than small ones.
    moved = np.abs(noisy - x)
    large = x > np.quantile(x, 0.9)
    assert np.median(moved[large]) > 10 * np.median(moved[~large])


def test_a_run_says_that_it_compresses_tails_unless_it_was_asked_to(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", amounts())
    said: dict[str, list[str]] = {}
    for scaling in ("auto", "compressed"):
        settings = parse_settings(
            {
                "data": {"source": str(tmp_path / "x.npy"), "scaling": scaling},
                "encoder": {"hidden": 8, "out_features": 4},
                "training": {"epochs": 1, "batch_size": 100, "device": "cpu"},
            }
        )
        run_training(tmp_path / scaling, settings, reporter=Quiet(), note=said.setdefault(scaling, []).append)
        assert load_run(tmp_path / scaling).standardizer.tails is not None
    assert any("heavy tails" in sentence for sentence in said["auto"])
    assert not any("heavy tails" in sentence for sentence in said["compressed"])
