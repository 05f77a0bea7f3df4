from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pinoise.choices import SCORES
from pinoise.experiments.ranking import (
    against_best_rival,
    against_rivals,
    rank_methods,
    ranking_as_dict,
    score_table,
)
from pinoise.experiments.results import Cell, Line, summarise

METHODS = ("raw", "untrained", "fixed", "scarf", "pinda")


def table(methods: tuple[str, ...] = METHODS, *, sets: int = 6, seeds: int = 2, draws: int = 3) -> list[Cell]:
    """Cells with scores of their own, different for every draw."""
    rng = np.random.default_rng(1)
    cells = []
    for number in range(sets):
        for method in methods:
            for seed in range(seeds):
                knn, sr, lr, other = map(float, rng.random(4))
                few = tuple(map(float, rng.random(draws)))
                mean = float(np.mean(few))
                cells.append(Cell(f"set{number}", method, seed, "joined", knn, sr, lr, mean, 1.0, (), few, other))
    return cells


def means(cells: list[Cell], score: str) -> dict[str, dict[str, float]]:
    """Data set to method to mean score in percent, one cell at a time."""
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        found.setdefault(cell.data, {}).setdefault(cell.method, []).append(getattr(cell, score))
    return {data: {method: 100 * float(np.mean(v)) for method, v in row.items()} for data, row in found.items()}


@pytest.mark.parametrize("score", SCORES)
def test_scores_are_means_over_seeds(score: str) -> None:
    cells = table()
    found = score_table(summarise(cells), score)
    expected = means(cells, score)
    assert found.keys() == expected.keys()
    for data in expected:
        assert found[data] == pytest.approx(expected[data])


@pytest.mark.parametrize("score", SCORES)
def test_ranks_are_those_of_scipy_without_the_untrained_encoder_best_first(score: str) -> None:
    cells = table()
    ranked = ("raw", "fixed", "scarf", "pinda")
    rows = [[-row[method] for method in ranked] for row in means(cells, score).values()]
    expected = dict(zip(ranked, np.mean([stats.rankdata(row) for row in rows], axis=0), strict=True))
    found = rank_methods(summarise(cells), score)
    assert found == pytest.approx(expected)
    assert list(found.values()) == sorted(found.values())


def test_our_method_is_held_against_every_other_also_untrained_ones() -> None:
    cells = table()
    found = against_rivals(summarise(cells), "few")
    assert [item.rival for item in found] == ["raw", "untrained", "fixed", "scarf"]
    rows = means(cells, "few")
    for item in found:
        gaps = {data: row["pinda"] - row[item.rival] for data, row in rows.items()}
        assert item.method == "pinda"
        assert item.sets == 6
        assert item.wins == sum(gap > 0 for gap in gaps.values())
        assert set(item.losses) == {data for data, gap in gaps.items() if gap < 0}
        assert item.median == pytest.approx(np.median(list(gaps.values())))
        assert item.p == pytest.approx(stats.wilcoxon(list(gaps.values())).pvalue)


def test_without_ours_the_best_ranked_is_the_one() -> None:
    lines = summarise(table(("raw", "fixed", "scarf", "vime")))
    best = next(method for method in rank_methods(lines, "knn") if method != "raw")
    found = against_rivals(lines, "knn")
    assert {item.method for item in found} == {best}
    assert {item.rival for item in found} == {"raw", "fixed", "scarf", "vime"} - {best}


def test_nothing_trained_has_no_standing() -> None:
    cells = table(("raw", "untrained"))
    assert rank_methods(summarise(cells), "few") == {"raw": 1.0}
    assert against_rivals(summarise(cells), "few") == []
    assert ranking_as_dict(cells)["significance"]["within_sets"] == {}


def test_a_method_that_is_not_on_every_set_has_no_rank() -> None:
    cells = [cell for cell in table() if (cell.data, cell.method) != ("set3", "scarf")]
    lines = summarise(cells)
    assert set(rank_methods(lines, "few")) == {"raw", "fixed", "pinda"}
    held = {item.rival: item.sets for item in against_rivals(lines, "few")}
    assert held == {"raw": 6, "untrained": 6, "fixed": 6, "scarf": 5}


def test_a_method_without_a_score_takes_no_part_in_it() -> None:
    cells = table(("raw", "forest", "fixed", "pinda"))
    cells = [replace(cell, knn=None) if cell.method == "forest" else cell for cell in cells]
    lines = summarise(cells)
    assert set(rank_methods(lines, "knn")) == {"raw", "fixed", "pinda"}
    assert rank_methods(lines, "knn") == rank_methods([line for line in lines if line.method != "forest"], "knn")
    assert set(rank_methods(lines, "few")) == {"raw", "forest", "fixed", "pinda"}
    assert [item.rival for item in against_rivals(lines, "knn")] == ["raw", "fixed"]
    assert [item.rival for item in against_rivals(lines, "few")] == ["raw", "forest", "fixed"]
    json.dumps(ranking_as_dict(cells), allow_nan=False)


def test_the_best_rival_is_the_trained_one_with_the_most_with_few_labels() -> None:
    cells = [cell for cell in table() if cell.data == "set0"]
    rows = means(cells, "few")["set0"]
    rival = max(("fixed", "scarf"), key=lambda method: rows[method])
    found = against_best_rival(cells)
    assert found is not None
    assert found[0] == rival
    assert found[1].mean == pytest.approx(rows["pinda"] - rows[rival])
    assert found[1].low < found[1].mean < found[1].high


def test_an_advantage_that_every_draw_has_is_certain() -> None:
    def cell(method: str, seed: int, more: float) -> Cell:
        draws = tuple(0.5 + 0.1 * draw + more for draw in range(3))
        return Cell("toy", method, seed, "joined", 0, 0, 0, float(np.mean(draws)), 1.0, (), draws)

    found = against_best_rival([cell(method, seed, more) for seed in (3, 1) for method, more in GAINS.items()])
    assert found is not None
    assert found[0] == "scarf"
    assert (found[1].mean, found[1].low, found[1].high) == pytest.approx((2.0, 2.0, 2.0))


GAINS = {"raw": 0.3, "fixed": 0.0, "scarf": 0.01, "pinda": 0.03}


@pytest.mark.parametrize(
    "methods", [("raw", "pinda"), ("raw", "fixed", "scarf"), ("raw", "untrained")], ids=["alone", "absent", "none"]
)
def test_without_ours_or_a_rival_there_is_nothing_to_hold_against(methods: tuple[str, ...]) -> None:
    assert against_best_rival(table(methods, sets=1)) is None


def test_seeds_that_differ_are_not_compared() -> None:
    cells = [cell for cell in table(sets=1) if (cell.method, cell.seed) != ("pinda", 1)]
    assert against_best_rival(cells) is None


def test_seeds_are_paired_whatever_their_order() -> None:
    cells = table(sets=1)
    ours, others = ([cell for cell in cells if (cell.method == "pinda") == mine] for mine in (True, False))
    assert against_best_rival(ours + others) == against_best_rival(ours + others[::-1])


def test_the_standing_is_json_of_ranks_and_significance() -> None:
    cells = table()
    found = json.loads(json.dumps(ranking_as_dict(cells), allow_nan=False))
    assert found.keys() == {"ranks", "significance"}
    assert tuple(found["ranks"]) == tuple(found["significance"]["over_sets"]) == SCORES
    lines = summarise(cells)
    for score in SCORES:
        assert found["ranks"][score] == rank_methods(lines, score)
        for stored, item in zip(found["significance"]["over_sets"][score], against_rivals(lines, score), strict=True):
            assert stored.keys() == {"method", "rival", "sets", "wins", "losses", "median", "p", "holm"}
            assert (stored["rival"], stored["wins"], stored["p"]) == (item.rival, item.wins, item.p)
    within = found["significance"]["within_sets"]
    assert list(within) == [f"set{number}" for number in range(6)]
    for name, stored in within.items():
        assert stored.keys() == {"rival", "mean", "low", "high"}
        gap = against_best_rival([cell for cell in cells if cell.data == name])
        assert gap is not None
        assert (stored["rival"], stored["mean"]) == (gap[0], gap[1].mean)


def test_one_set_has_ranks_too() -> None:
    line = [Line("toy", method, {"few": few}, {}, 1.0, ()) for method, few in (("scarf", 80.0), ("pinda", 80.0))]
    assert rank_methods(line, "few") == {"scarf": 1.5, "pinda": 1.5}
    (item,) = against_rivals(line, "few")
    assert (item.rival, item.wins, item.losses, item.p) == ("scarf", 0, (), 1.0)
