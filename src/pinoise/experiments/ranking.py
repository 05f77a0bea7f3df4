"""How methods rank over several data sets, and whether differences are more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pinoise.choices import SCORES
from pinoise.experiments.recipes import OURS, is_ranked, is_trained
from pinoise.experiments.results import Cell, Line, summarise
from pinoise.experiments.significance import (
    DECIMALS,
    Interval,
    ScoreTable,
    Versus,
    against_all,
    bootstrap_mean,
)


def mean_ranks(scores: ScoreTable) -> dict[str, float]:
    """Return the mean rank over data sets of every method that is present on all of them.

    The best method of a set has rank 1, and equal ones share the average of their ranks. A method that is absent from
    any set is left out and takes no rank from others.

    >>> mean_ranks({"wine": {"raw": 0.9, "fixed": 0.8}, "digits": {"raw": 0.7, "fixed": 0.7, "scarf": 0.9}})
    {'raw': 1.25, 'fixed': 1.75}
    """
    sets = list(scores.values())
    methods = [method for method in (sets[0] if sets else ()) if all(method in row for row in sets)]
    if not methods:
        return {}
    from scipy.stats import rankdata

    ranks = rankdata(-np.round([[row[method] for method in methods] for row in sets], DECIMALS), axis=1)
    return dict(zip(methods, ranks.mean(axis=0).tolist(), strict=True))


def score_table(lines: Sequence[Line], score: str) -> ScoreTable:
    """Return data set to method to mean score, in percent, of the methods that have it."""
    table: dict[str, dict[str, float]] = {}
    for line in (line for line in lines if score in line.means):
        table.setdefault(line.data, {})[line.method] = line.means[score]
    return table


def rank_methods(lines: Sequence[Line], score: str) -> dict[str, float]:
    """Return the mean rank over data sets of every method that is a choice, best first.

    >>> means = {"few": 90.0}
    >>> lines = [Line("toy", "scarf", means, {}, 1.0, ()), Line("toy", "pinda", {"few": 95.0}, {}, 1.0, ())]
    >>> rank_methods(lines, "few")
    {'pinda': 1.0, 'scarf': 2.0}
    """
    table = score_table([line for line in lines if is_ranked(line.method)], score)
    return dict(sorted(mean_ranks(table).items(), key=lambda item: item[1]))


def against_rivals(lines: Sequence[Line], score: str) -> list[Versus]:
    """Return our method against every other that has the score, or the best-ranked trained one if ours was not."""
    lines = [line for line in lines if score in line.means]
    trained = [method for method in rank_methods(lines, score) if is_trained(method)]
    if not trained:
        return []
    method = OURS if OURS in trained else trained[0]
    others = dict.fromkeys(line.method for line in lines if line.method != method)
    return against_all(score_table(lines, score), method, list(others))


def against_best_rival(cells: Sequence[Cell]) -> tuple[str, Interval] | None:
    """Return our few-label advantage over the best rival on one data set, with a bootstrap interval, in percent.

    Raw features have a sentence of their own, so they do not count as a rival here. Nothing where our method or every
    rival is absent, or where seeds differ.
    """
    lines = [line for line in summarise(cells) if is_ranked(line.method) and line.method != "raw"]
    rivals = [line for line in lines if line.method != OURS and "few" in line.means]
    if not rivals or not any(line.method == OURS for line in lines):
        return None
    best = max(rivals, key=lambda line: line.means["few"]).method
    draws = {method: {cell.seed: cell.few_draws for cell in cells if cell.method == method} for method in (OURS, best)}
    if draws[OURS].keys() != draws[best].keys():
        return None
    ours, theirs = (100 * np.array([draws[method][seed] for seed in draws[OURS]]) for method in (OURS, best))
    return best, bootstrap_mean(ours - theirs)


def ranking_as_dict(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return ranks and significance for JSON."""
    lines = summarise(cells)
    within = {}
    for data in dict.fromkeys(cell.data for cell in cells):
        best = against_best_rival([cell for cell in cells if cell.data == data])
        if best is not None:
            within[data] = {"rival": best[0], **asdict(best[1])}
    return {
        "ranks": {score: rank_methods(lines, score) for score in SCORES},
        "significance": {
            "over_sets": {score: [asdict(found) for found in against_rivals(lines, score)] for score in SCORES},
            "within_sets": within,
        },
    }
