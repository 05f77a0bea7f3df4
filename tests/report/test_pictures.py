"""Grids of noise: what is shown is what was given, and one colour scale holds for all that is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pinoise.errors import UserError
from pinoise.report import MapRow, compare_grid, noise_grid, to_png

Array = npt.NDArray[Any]


def some(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=shape, dtype=np.uint8)
    sigma = rng.uniform(1, 40, size=shape)
    return x, sigma, sigma * rng.normal(size=shape)


def rows_of(figure: Figure, columns: int) -> list[list[Axes]]:
    """The axes with images, row by row; those of colour bars left out."""
    cells = [axes for axes in figure.axes if axes.images]
    assert len(cells) % columns == 0
    return [cells[start : start + columns] for start in range(0, len(cells), columns)]


def bars_of(figure: Figure) -> list[Axes]:
    """The axes of colour bars."""
    return [child for axes in figure.axes for child in axes.child_axes if isinstance(child, Axes)]


def shown(row: list[Axes]) -> Array:
    return np.stack([np.asarray(axes.images[0].get_array()) for axes in row])


def clipped(x: Array) -> Array:
    return np.clip(np.round(x), 0, 255)


@pytest.mark.parametrize("shape", [(3, 5, 4), (3, 5, 4, 1), (3, 5, 4, 3)])
def test_every_row_shows_what_it_was_given(shape: tuple[int, ...]) -> None:
    x, sigma, epsilon = some(shape)
    rows = rows_of(noise_grid(x, sigma, epsilon, x + epsilon), columns=3)

    def squeeze(a: Array) -> Array:
        return a[..., 0] if shape[3:] == (1,) else a

    def mean(a: Array) -> Array:
        return (a[..., 0] + a[..., 1] + a[..., 2]) / 3 if shape[3:] == (3,) else squeeze(a)

    assert len(rows) == 4
    np.testing.assert_array_equal(shown(rows[0]), squeeze(x))
    np.testing.assert_allclose(shown(rows[1]), mean(sigma))
    np.testing.assert_allclose(shown(rows[2]), mean(epsilon))
    np.testing.assert_array_equal(shown(rows[3]), squeeze(clipped(x + epsilon)))
    assert [row[0].get_ylabel().split("\n")[0] for row in rows] == ["original", "σ", "ε, one draw", "x + ε"]
    assert ("channels' mean" in rows[1][0].get_ylabel()) == (shape[3:] == (3,))


def test_channels_that_no_screen_has_are_shown_as_their_mean() -> None:
    x, sigma, epsilon = some((2, 5, 4, 6))
    rows = rows_of(noise_grid(x, sigma, epsilon, x + epsilon), columns=2)
    np.testing.assert_array_equal(shown(rows[0]), clipped(x.mean(axis=-1)))
    np.testing.assert_array_equal(shown(rows[3]), clipped((x + epsilon).mean(axis=-1)))
    np.testing.assert_allclose(shown(rows[1]), sigma.mean(axis=-1))


def test_all_maps_of_sigma_share_one_scale_and_those_of_noise_a_symmetric_one() -> None:
    x, sigma, epsilon = some((4, 5, 5))
    sigma *= np.array([1, 2, 3, 4])[:, None, None]
    figure = noise_grid(x, sigma, epsilon, x + epsilon)
    _, of_sigma, of_epsilon, _ = rows_of(figure, columns=4)
    assert len({axes.images[0].norm for axes in of_sigma}) == 1
    assert len({axes.images[0].norm for axes in of_epsilon}) == 1
    low, high = of_sigma[0].images[0].get_clim()
    assert low == 0
    assert np.percentile(sigma, 95) < high <= sigma.max()
    low, high = of_epsilon[0].images[0].get_clim()
    assert low == -high
    assert high > 0
    bars = bars_of(figure)
    assert len(bars) == 2  # a legend for each scale
    assert all("pixel values" in axes.get_ylabel() for axes in bars)


def test_one_extreme_pixel_does_not_hide_the_others_and_is_told() -> None:
    x, sigma, epsilon = some((3, 10, 10))
    sigma[0, 0, 0] = 9876.0
    figure = noise_grid(x, sigma, epsilon, x + epsilon)
    assert rows_of(figure, columns=3)[1][0].images[0].get_clim()[1] < 50
    assert any("up to 9,876" in axes.get_ylabel() for axes in bars_of(figure))


def test_noise_of_zero_is_drawn() -> None:
    x = some((2, 4, 4))[0]
    zero = np.zeros(x.shape)
    assert to_png(noise_grid(x, zero, zero, x)).startswith(b"\x89PNG")


def test_a_learned_mean_gets_a_row_of_its_own() -> None:
    x, sigma, epsilon = some((2, 4, 4))
    rows = rows_of(noise_grid(x, sigma, epsilon, x + epsilon, mu=epsilon / 2, symbol="w"), columns=2)
    assert [row[0].get_ylabel() for row in rows] == ["original", "μ", "w", "ε, one draw", "x + ε"]
    np.testing.assert_array_equal(shown(rows[1]), epsilon / 2)


def test_values_other_than_bytes_are_shown_between_their_black_and_white() -> None:
    x = np.array([[[-2.0, 0.0, 2.0]]])
    rows = rows_of(noise_grid(x, abs(x), x, x + 5, brightness=(-2.0, 2.0)), columns=1)
    assert shown(rows[0]).tolist() == [[[0, 128, 255]]]
    assert shown(rows[3]).tolist() == [[[255, 255, 255]]]


def test_a_comparison_has_one_scale_for_all_runs_of_a_kind() -> None:
    x, sigma, epsilon = some((3, 5, 5))
    rows = [
        MapRow("learned μ", epsilon, "signed"),
        MapRow("σ", sigma, "scale"),
        MapRow("w of $uniform$", 3 * sigma, "scale"),
    ]
    figure = compare_grid(x, rows, titles=["shirt", "$5 shoe$", "bag"])
    drawn = rows_of(figure, columns=3)
    for row, given in zip(drawn[1:], rows, strict=True):
        np.testing.assert_array_equal(shown(row), given.maps)
    assert len({axes.images[0].norm for row in drawn[2:] for axes in row}) == 1
    assert drawn[2][0].images[0].get_clim()[1] > np.percentile(3 * sigma, 90)
    low, high = drawn[1][0].images[0].get_clim()
    assert low == -high
    assert [axes.get_title() for axes in drawn[0]] == ["shirt", "$5 shoe$", "bag"]
    to_png(figure)  # names that look like formulas are not read as such


def test_the_same_figure_is_the_same_file() -> None:
    x, sigma, epsilon = some((2, 4, 4))
    first, second = (to_png(noise_grid(x, sigma, epsilon, x + epsilon)) for _ in range(2))
    assert first == second


def test_arrays_that_do_not_belong_together_are_named() -> None:
    x, sigma, epsilon = some((2, 4, 4))
    with pytest.raises(UserError, match=r"sigma has the shape \(1, 4, 4\) and originals \(2, 4, 4\)"):
        noise_grid(x, sigma[:1], epsilon, x)
    with pytest.raises(UserError, match=r"originals has the shape \(4, 4\): pictures have"):
        noise_grid(x[0], sigma[0], epsilon[0], x[0])
    with pytest.raises(UserError, match="1 titles for 2 columns"):
        noise_grid(x, sigma, epsilon, x, titles=["one"])
