"""Charts: ranks, spreads and curves are those of the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from pinoise.errors import UserError
from pinoise.report import compare_bars, curves, rank_features, sigma_bars, to_png
from pinoise.report.charts import colours_of, feature_names, panels
from pinoise.report.interactive import bars_html, curves_html, script
from pinoise.training.callbacks import Record


def a_history() -> list[Record]:
    information = [math.nan, 0.2, math.nan, 0.4]
    return [
        Record(
            epoch=number,
            step=10 * number,
            loss=5.0 / number,
            metrics={"contrast": 4.0 / number, "sigma_mean": 1.0, "sigma_median": 0.5, "information": value},
            seconds=float(number),
        )
        for number, value in enumerate(information, start=1)
    ]


def test_features_are_ranked_by_their_mean_with_their_spread() -> None:
    sigma = np.random.default_rng(0).uniform(size=(101, 40)) * np.arange(1, 41)
    ranking = rank_features(sigma, [f"f{j}" for j in range(40)])
    means = {f"f{j}": sum(sigma[:, j]) / 101 for j in range(40)}
    assert ranking.names == sorted(means, key=lambda name: -means[name])[:30]
    np.testing.assert_allclose(ranking.mean, [means[name] for name in ranking.names])
    assert [f"f{j}" for j in ranking.columns] == ranking.names
    for name, low, high in zip(ranking.names, ranking.low, ranking.high, strict=True):
        values = sorted(sigma[:, int(name[1:])])
        assert (low, high) == pytest.approx((values[5], values[95]))


def test_fewer_features_are_all_shown_and_numbered_without_names() -> None:
    ranking = rank_features(np.array([[[1.0, 3.0], [2.0, 4.0]]]))
    assert ranking.names == ["feature 1, 1", "feature 0, 1", "feature 1, 0", "feature 0, 0"]
    with pytest.raises(UserError, match="1 names for 4 features"):
        rank_features(np.ones((2, 4)), ["a"])


def test_bars_are_as_long_as_the_mean_and_lines_as_the_spread() -> None:
    ranking = rank_features(np.array([[1.0, 5.0], [3.0, 5.0]]), ["cost in $", "$a$ <b>"])
    figure = sigma_bars(ranking, symbol="w")
    (axes,) = figure.axes
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [bar.get_width() for bar in bars] == [5.0, 2.0]
    (lines,) = [item for item in axes.collections if isinstance(item, LineCollection)]
    ends = np.stack([np.asarray(segment)[:, 0] for segment in lines.get_segments()])
    np.testing.assert_allclose(ends, np.array([[5.0, 5.0], [1.1, 2.9]]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["$a$ <b>", "cost in $"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the largest on top
    assert axes.get_xlabel().startswith("mean w ")
    to_png(figure)


def test_a_comparison_has_a_dot_for_every_feature_and_run() -> None:
    first, second = np.array([[1.0, 2.0, 3.0]]), np.array([[9.0, 1.0, 1.0], [7.0, 1.0, 1.0]])
    (axes,) = compare_bars(["a", "b", "c"], [("one", first), ("two", second)], symbol="σ").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "c", "b"]
    dots = [np.asarray(collection.get_offsets())[:, 0].tolist() for collection in axes.collections]
    assert dots == [[1.0, 3.0, 2.0], [8.0, 1.0, 1.0]]


def test_curves_have_the_epochs_at_which_something_was_measured() -> None:
    found = panels(a_history())
    assert [panel.title.split(",")[0] for panel in found] == [
        "Loss",
        "Size of the noise",
        "Information in the views",
    ]
    assert found[0].lines["loss"] == ([1, 2, 3, 4], [5.0, 2.5, 5 / 3, 1.25])
    assert found[2].lines == {"exact information": ([2, 4], [0.2, 0.4])}
    drawn = [line.get_xydata() for axes in curves(a_history()).axes for line in axes.get_lines()]
    expected = [list(zip(*line, strict=True)) for panel in found for line in panel.lines.values()]
    assert [np.asarray(line).tolist() for line in drawn] == [[list(pair) for pair in line] for line in expected]


def test_a_loss_of_the_contrast_alone_is_drawn_once() -> None:
    history = [record._replace(metrics={"contrast": record.loss}) for record in a_history()]
    assert [list(panel.lines) for panel in panels(history)] == [["loss"]]


def test_a_history_without_numbers_has_no_curves() -> None:
    history = [Record(1, 1, math.nan, {}, 0.0)]
    assert panels(history) == []
    with pytest.raises(UserError, match="no curve"):
        curves(history)


def test_names_are_no_code_in_the_interactive_charts() -> None:
    ranking = rank_features(np.array([[2.0, 1.0]]), ["</script><script>alert(1)</script>", "<b>x</b>"])
    piece = bars_html(ranking, symbol="σ")
    assert piece.count("<script") == 1
    assert "alert(1)" in piece
    assert "\\u003cb\\u003e" not in piece  # plotly would read the tag
    assert "&lt;b" in piece or "\\u0026lt;b" in piece
    shown = panels(a_history())
    assert all("src=" not in piece + curves_html(panel, colours=colours_of(shown), name="c") for panel in shown)


def test_every_curve_has_a_colour_of_its_own() -> None:
    shown = panels(a_history())
    labels = [label for panel in shown for label in panel.lines]
    assert len(shown) > 1
    assert len({colours_of(shown)[label] for label in labels}) == len(set(labels))


def test_the_script_can_stand_inside_a_page() -> None:
    assert "</script" not in script().lower()


def test_every_feature_of_a_sample_has_a_name_of_its_own() -> None:
    assert len(set(feature_names((3, 4, 2)))) == 24
