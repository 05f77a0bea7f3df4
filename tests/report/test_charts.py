"""Charts: ranks, spreads and curves are those of the numbers."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from pinoise.errors import UserError
from pinoise.report import rank_features
from pinoise.report.charts import chart, draw_curves, feature_names, panels
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


def test_curves_have_the_epochs_at_which_something_was_measured() -> None:
    found = panels(a_history())
    assert [panel.title.split(",")[0] for panel in found] == [
        "Loss",
        "Size of the noise",
        "Information in the views",
    ]
    assert found[0].lines["loss"] == ([1, 2, 3, 4], [5.0, 2.5, 5 / 3, 1.25])
    assert found[2].lines == {"exact information": ([2, 4], [0.2, 0.4])}
    drawn = draw_curves("c", found[2])
    assert drawn.alt == "Information in the views, in nats over epoch. Last values: exact information 0.4."
    assert "exact information</text>" in drawn.svg


def test_a_loss_of_the_contrast_alone_is_drawn_once() -> None:
    history = [record._replace(metrics={"contrast": record.loss}) for record in a_history()]
    assert [list(panel.lines) for panel in panels(history)] == [["loss"]]


def test_a_history_without_numbers_has_no_curves() -> None:
    assert panels([Record(1, 1, math.nan, {}, 0.0)]) == []


def test_dots_have_their_text_under_the_pointer_and_names_are_no_code() -> None:
    figure = Figure()
    figure.add_subplot(xticks=[], yticks=[]).scatter([0, 1, 2], [0, 1, 2])
    names = ["a & b", "</svg><script>", "c"]
    svg = chart("map", figure, alt="", title="", points=names).svg
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    assert [node.text for node in root.iter() if node.tag.endswith("title")] == names
    identifiers = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert all(name.startswith("map-") for name in identifiers)
    assert {node.attrib["href"][1:] for node in root.iter() if node.tag.endswith("use")} <= set(identifiers)


def test_every_feature_of_a_sample_has_a_name_of_its_own() -> None:
    assert len(set(feature_names((3, 4, 2)))) == 24
