"""Random numbers belong to one fit: threads do not disturb them, and torch's global generator is never touched."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pinoise import PiNDA, PiNDAClassifier
from pinoise.choices import METHOD, OBJECTIVE, VIEW, Covariance
from pinoise.evaluation import voting

X = load_digits().data[:200]
IMAGES = (load_digits().images[:64] * 15).astype(np.uint8)
SMALL: dict[str, Any] = {"n_components": 8, "hidden": 16, "epochs": 2, "batch_size": 64}
SMALL_IMAGES: dict[str, Any] = {"encoder": "resnet18", "image_shape": (8, 8), "epochs": 1, "batch_size": 32}


class Dropping(nn.Module):
    """A user's encoder that draws at every pass, and in a way that takes no generator."""

    out_features = 8

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(shape[0], 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.layers(x)
        return features


def shaken(x: Tensor) -> Tensor:
    """A user's view that draws from torch's global generator."""
    return x + torch.randn_like(x)


CHOICES: dict[str, dict[str, Any]] = {
    **{f"method {name}": {"method": name} for name in METHOD.names},
    **{f"objective {name}": {"objective": name} for name in OBJECTIVE.names},
    **{
        f"view {name}": {"augmentations": [name]}
        for name in VIEW.names
        if name not in ("background", "simclr", "byol", "crop", "viewmaker")  # of images, or against the encoder
    },
    **{f"covariance {name}": {"covariance": name} for name in get_args(Covariance)},
    "differences without neighbours": {"covariance": "differences", "neighbours": 0, "amplitude": 1.5},
    "viewmaker": {"augmentations": ["viewmaker"], "objective": "adversarial"},
    "uniform noise": {"distribution": "uniform", "mean": "learned", "generator": "mlp", "objective": "paper"},
    "own encoder": {"encoder": Dropping, "hidden": None, "n_components": None},
    "own view": {"augmentations": [shaken]},
}


def trained(seed: int, **choices: Any) -> bytes:
    """Return all numbers that a fit and its draws of noise produce."""
    images = "image_shape" in choices
    x = IMAGES if images else X
    parameters = {**({} if images else SMALL), **choices}
    model = PiNDA(**parameters, random_state=seed).fit(x)
    weights = [value.numpy().tobytes() for value in model.encoder_.state_dict().values()]
    return b"".join([*weights, model.transform(x).tobytes(), model.augment(x, random_state=seed).tobytes()])


@contextmanager
def untouched() -> Iterator[None]:
    """Fail if the block moved any of the process's random numbers."""
    torch.manual_seed(12345)
    before = torch.get_rng_state(), str(np.random.get_state()), random.getstate()  # noqa: NPY002
    yield
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (str(np.random.get_state()), random.getstate())  # noqa: NPY002


@pytest.mark.parametrize("name", CHOICES)
def test_no_choice_touches_the_global_generators(name: str) -> None:
    with untouched():
        first = trained(0, **CHOICES[name])
    torch.manual_seed(999)
    assert trained(0, **CHOICES[name]) == first


@pytest.mark.parametrize("view", ["simclr", "byol", "crop"])
def test_no_view_of_images_touches_the_global_generators(view: str) -> None:
    with untouched():
        first = trained(0, **SMALL_IMAGES, augmentations=[view])
    torch.manual_seed(999)
    assert trained(0, **SMALL_IMAGES, augmentations=[view]) == first


def test_saving_and_loading_touch_no_global_generator(tmp_path: Path) -> None:
    model = PiNDA(**SMALL, random_state=0).fit(X)
    with untouched():
        model.save(tmp_path / "model")
        PiNDA.load(tmp_path / "model")


def test_twenty_fits_in_each_of_two_threads_equal_the_fits_alone() -> None:
    work = [(seed, CHOICES[name]) for seed in range(10) for name in ("method simclr", "own encoder")] * 2
    alone = {}
    for seed, choices in work:
        if (key := (seed, str(choices))) not in alone:
            alone[key] = trained(seed, **choices)
    with untouched(), ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda job: trained(job[0], **job[1]), work))
    assert len(together) == 40
    assert [alone[seed, str(choices)] == found for (seed, choices), found in zip(work, together, strict=True)].count(
        False
    ) == 0


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # two epochs of a small encoder
@pytest.mark.usefixtures("few_trees")
def test_classifiers_in_two_threads_equal_those_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(voting.STRENGTHS, "logistic", (0.1, 0.01))
    y = np.where(np.arange(200) < 20, load_digits().target[:200] % 2, -1)

    def classified(seed: int) -> bytes:
        found: bytes = PiNDAClassifier(PiNDA(**SMALL), random_state=seed).fit(X, y).predict_proba(X).tobytes()
        return found

    alone = [classified(seed) for seed in (0, 1)]
    assert alone[0] != alone[1]
    with untouched(), ThreadPoolExecutor(2) as pool:
        assert list(pool.map(classified, [0, 1])) == alone


def test_draws_of_one_model_in_two_threads_are_those_of_their_seeds() -> None:
    model = PiNDA(**SMALL, random_state=0).fit(X)
    alone = [model.augment(X, random_state=seed) for seed in range(5)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda seed: model.augment(X, random_state=seed), list(range(5)) * 8))
    assert all(np.array_equal(found, alone[number % 5]) for number, found in enumerate(together))
