"""Whatever modes of torch a caller has set, the numbers are the same, and the modes stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from pinoise import PiNDA
from pinoise.modes import own_modes

X = load_digits().data[:150].astype(np.float32)
SMALL: dict[str, Any] = {"n_components": 8, "hidden": 16, "epochs": 2, "batch_size": 64, "random_state": 0}


@contextmanager
def default_type(dtype: torch.dtype) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64": lambda: default_type(torch.float64),
    "bfloat16": lambda: default_type(torch.bfloat16),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "meta device": lambda: torch.device("meta"),
}


def modes() -> tuple[Any, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_device(),
    )


def outputs(folder: Path) -> list[bytes]:
    """Return the numbers of every door of the estimator, the file included."""
    model = PiNDA(**SMALL).fit(X)
    model.save(folder / "model")
    again = PiNDA.load(folder / "model")
    results = (model.transform(X), again.transform(X), model.augment(X, random_state=1), model.noise_scale(X))
    return [result.tobytes() for result in results]


@pytest.mark.parametrize("name", MODES)
def test_the_numbers_do_not_depend_on_the_callers_modes(name: str, tmp_path: Path) -> None:
    plain = outputs(tmp_path)
    with MODES[name]():
        before = modes()
        found = outputs(tmp_path)
        assert modes() == before
    assert found == plain


@pytest.mark.parametrize("name", MODES)
def test_the_modes_stay_as_they_were_after_an_error(name: str) -> None:
    with MODES[name]():
        before = modes()
        with pytest.raises(ValueError, match="inf"):
            PiNDA(**SMALL).fit(np.full((20, 3), np.inf))
        assert modes() == before


def test_a_users_module_in_double_precision_trains() -> None:
    with default_type(torch.float64):
        encoder = nn.Sequential(nn.Linear(64, 8))
        encoder.out_features = 8  # type: ignore[assignment]
        model = PiNDA(encoder=encoder, epochs=1, batch_size=64, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert encoder[0].weight.dtype == torch.float64


def test_threads_share_the_default_type_without_harm() -> None:
    plain = PiNDA(**SMALL).fit(X).transform(X)
    with default_type(torch.float64), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: PiNDA(**SMALL).fit(X).transform(X), range(6)))
        assert torch.get_default_dtype() == torch.float64
    assert all(np.array_equal(plain, each) for each in found)


def test_own_modes_nest() -> None:
    with torch.no_grad(), own_modes(), torch.no_grad(), own_modes():
        assert torch.is_grad_enabled()
    assert torch.is_grad_enabled()
