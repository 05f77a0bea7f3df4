"""Small real problems for the training tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.build import build_model
from pinoise.training.config import Settings, merge, parse_settings
from pinoise.training.objectives import ContrastiveModel

SMALL: dict[str, Any] = {
    "encoder": {"hidden": 32, "out_features": 16},
    "head": {"hidden": 16, "out_features": 8},
    "noise": {"generator": {"hidden": 32}},
    "training": {"epochs": 2, "batch_size": 64, "device": "cpu", "information_draws": 2},
}
Problem = Callable[..., tuple[Settings, ContrastiveModel, Rows]]


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    x: np.ndarray = load_digits().data[:300]
    return x


@pytest.fixture
def problem(digits: np.ndarray) -> Problem:
    """Make settings, an untrained model and rows of digits; changes are nested settings."""

    def make(**changes: Any) -> tuple[Settings, ContrastiveModel, Rows]:
        settings = parse_settings(merge(SMALL, changes))
        standardizer = Standardizer.fit(digits)
        rows = make_rows(digits, standardizer)
        torch.manual_seed(0)
        return settings, build_model(settings, standardizer, rows), rows

    return make
