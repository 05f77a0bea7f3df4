"""Means and medians of numbers in pieces are those of the whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from pinoise.data.encoding import middles
from pinoise.data.encoding.middles import Fill

MOST_PASSES = 50

Floats = npt.NDArray[np.float64]


@pytest.fixture(autouse=True)
def few_numbers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short columns be too long to be counted one by one."""
    monkeypatch.setattr(middles, "_SAMPLE", 16)
    monkeypatch.setattr(middles, "_KEPT", 8)
    monkeypatch.setattr(middles, "_BINS", 4)


def median(values: Floats, *, pieces: int = 4) -> float:
    fill = Fill("median")
    for _ in range(MOST_PASSES):
        for piece in np.array_split(values, pieces):
            fill.add(piece)
        if not fill.again():
            return fill.value
    raise AssertionError(f"no median after {MOST_PASSES} passes")


def test_a_median_between_two_groups_is_found_however_far_they_are_apart() -> None:
    random = np.random.default_rng(0)
    values = np.concatenate([random.random(100), 1e6 + random.random(100)])
    assert median(values) == np.median(values)


@pytest.mark.parametrize("seed", range(50))
def test_medians_of_wide_sorted_and_repeated_numbers_are_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 200))
    for values in (
        random.normal(size=size),
        np.sort(random.normal(size=size)),
        random.integers(0, 5, size).astype(np.float64),
        random.choice([-1.0, 1.0], size) * np.exp(30 * random.normal(size=size)),
    ):
        assert median(values) == np.median(values)
