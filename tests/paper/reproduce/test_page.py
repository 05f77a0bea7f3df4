"""The page about reproductions: complete, self-contained, and its tables sort."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.report.test_page import Outline

from pinoise.paper.reproduce.data import UsedSet
from pinoise.paper.reproduce.outcome import Curve, OutcomeLine, Reproduction
from pinoise.paper.reproduce.page import curve_panels, pictures_of, sweep_panels, write_reproductions
from pinoise.paper.reproduce.paper import find_item
from pinoise.paper.reproduce.run import ItemRun

HAR = UsedSet("har", "HAR", "har", "hapt561")


def table() -> ItemRun:
    papers = {"knn": [77.76, 0.61], "sr": [77.62, 0.27]}
    lines = [
        OutcomeLine("har", "noise alone", "Random Noise", "fixed", papers, {"knn": [80.0, 82.0], "sr": [70.0, 71.0]}),
        OutcomeLine(
            "har",
            "noise alone",
            "PiNDA, μ = 0",
            "pinda-paper",
            {"knn": [77.14, 0.94], "sr": [86.20, 0.40]},
            {"knn": [9.0, 9.5], "sr": [72.0, 73.0]},
            above="Random Noise",
            flags=("shrink",),
        ),
        OutcomeLine("har", "beside", "<b>raw</b>", "raw", {}, {"knn": [91.0, 91.0], "sr": [90.0, 90.0]}),
    ]
    return ItemRun(
        Reproduction(find_item("T2"), "small", [0, 1], [HAR], 3, 3, ["hapt561 stands in for HAR"], lines=lines)
    )


def curves() -> ItemRun:
    drawn = [Curve("har", title, "contrast", [1, 2], [3.0, last]) for title, last in (("a", 2.0), ("b", 1.0))]
    lines = [
        OutcomeLine("har", "vectors", curve.title, "fixed", {}, {"contrast": [curve.values[-1]]}) for curve in drawn
    ]
    return ItemRun(Reproduction(find_item("F8"), "small", [0], [HAR], 2, 2, lines=lines, curves=drawn))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    write_reproductions([table(), curves()], page=tmp_path / "page.html", folder=tmp_path / "results")
    return tmp_path / "page.html"


def test_the_page_has_the_papers_figure_ours_and_what_they_mean(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    outline = Outline(text)
    cells = "<td>77.76 ±0.61</td><td>81.0 [68.3, 93.7]</td><td>+3.2</td>"
    assert f'<th scope="row">Random Noise</th>{cells}' in text
    assert "HAR (stand-in hapt561)" in outline.words
    assert "pinoise reproduce T2 --scale small --seeds 2" in outline.words
    assert "Here it is above in 1 of 2, by -34.9 points on average" in outline.words
    assert "Learned noise collapsed to almost nothing in PiNDA, μ = 0" in outline.words
    assert "<b>raw</b>" in outline.words
    assert "<b>raw</b>" not in text


def test_results_are_written_beside_their_pictures(page: Path) -> None:
    folder = page.parent / "results"
    assert sorted(path.name for path in folder.iterdir()) == ["F8-1.svg", "F8.json", "T2.json"]
    again = Reproduction.from_dict(json.loads((folder / "T2.json").read_text(encoding="utf-8")))
    assert again.as_dict() == table().found.as_dict()


def test_one_column_is_drawn_over_data_sets_and_lines_are_rows() -> None:
    (panel,) = curve_panels(curves().found)
    assert panel.title == "HAR: last ℓ"
    assert panel.lines == {"a": ([1, 2], [3.0, 2.0]), "b": ([1, 2], [3.0, 1.0])}
    (picture,) = pictures_of(curves())
    assert picture.name == "F8-1"
    assert picture.alt == "HAR: last ℓ over epoch. Last values: a 2; b 1."


def test_a_sweep_is_drawn_over_the_batch_size() -> None:
    item = find_item("F5")
    lines = [
        OutcomeLine("stl10", group.title, row.title, "aug", {}, {"knn": [float(10 * n)], "sr": [1.0]})
        for n, group in enumerate(item.groups[:3])
        for row in group.rows
    ]
    found = Reproduction(item, "small", [0], [], 6, 6, lines=lines)
    knn, _ = sweep_panels(found)
    assert knn.lines["SimCLR"] == ([64, 128, 256], [0.0, 10.0, 20.0])
    assert set(knn.lines) == {"SimCLR", "PiNDA + SimCLR"}


def test_a_sweep_over_epochs_has_a_panel_for_every_score_of_a_data_set() -> None:
    item = find_item("epochs")
    lines = [
        OutcomeLine(key, group.title, row.title, "fixed", {}, {"knn": [float(n + 100 * (key == "har"))], "sr": [1.0]})
        for n, group in enumerate(item.groups[:2])
        for row in group.rows
        for key in item.data
    ]
    panels = sweep_panels(Reproduction(item, "small", [0], [], 8, 8, lines=lines))
    assert [panel.title for panel in panels] == ["HAR: kNN", "HAR: SR", "Reuters-21578: kNN", "Reuters-21578: SR"]
    assert panels[0].lines["PiNDA, μ = 0"] == ([1, 2], [100.0, 101.0])
