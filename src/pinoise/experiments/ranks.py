"""Methods ordered over several data sets, whose accuracies cannot be averaged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

ScoreTable = Mapping[str, Mapping[str, float]]
"""Data set to method to score; higher is better."""

DECIMALS = 10
"""Beyond these, scores count as equal: the same accuracies added up in another order differ in their last bits."""


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
    table = np.round([[row[method] for method in methods] for row in sets], DECIMALS)  # (sets, methods)
    mine, others = table[:, :, None], table[:, None, :]
    ranks = (others > mine).sum(axis=2) + ((others == mine).sum(axis=2) + 1) / 2
    return dict(zip(methods, ranks.mean(axis=0).tolist(), strict=True))


def differences(scores: ScoreTable, method: str, rival: str) -> dict[str, float]:
    """Return how far a method is above its rival on every data set that has both.

    >>> differences({"wine": {"raw": 0.75, "scarf": 1.0}, "digits": {"raw": 0.7}}, "scarf", "raw")
    {'wine': 0.25}
    """
    return {
        name: round(float(row[method] - row[rival]), DECIMALS)
        for name, row in scores.items()
        if method in row and rival in row
    }


def wins(scores: ScoreTable, method: str, rival: str) -> int:
    """Return on how many data sets a method is above its rival; a tie is none.

    >>> wins({"wine": {"raw": 0.75, "scarf": 1.0}, "digits": {"raw": 0.7, "scarf": 0.7}}, "scarf", "raw")
    1
    """
    return sum(difference > 0 for difference in differences(scores, method, rival).values())
