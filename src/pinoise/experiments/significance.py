"""Whether one method is better than another: on one data set, and over many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pinoise.errors import UserError

ScoreTable = Mapping[str, Mapping[str, float]]  # data set to method to score; higher is better

DECIMALS = 10  # beyond these, scores count as equal: sums in another order differ in their last bits


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


@dataclass(frozen=True)
class Interval:
    """A mean difference with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float


def bootstrap_difference(
    first: npt.ArrayLike, second: npt.ArrayLike, *, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return how far ``first`` is above ``second`` on one data set, with a percentile bootstrap interval.

    Repetitions of one seed share an encoder and are alike, so seeds are drawn first and repetitions inside each of
    them. With one seed the interval says nothing about other seeds.

    Args:
        first: scores of a method, of shape (seeds, repetitions).
        second: scores of its rival on the same seeds and the same labelled rows, of the same shape.
        draws: how many bootstrap samples.
        seed: of the bootstrap.
        level: the share of bootstrap means that the interval holds.

    >>> bootstrap_difference([[0.75, 1.0], [0.75, 1.0]], [[0.5, 0.75], [0.5, 0.75]])
    Interval(mean=0.25, low=0.25, high=0.25)
    """
    pairs = _paired(first, second)
    if pairs.ndim != 2:
        raise UserError(f"the scores have shape {pairs.shape}: a bootstrap needs (seeds, repetitions).")
    if draws < 1 or not 0 < level < 1:
        raise UserError(f"draws is {draws} and level is {level}: draws start at 1, a level lies between 0 and 1.")
    means = _bootstrap_means(pairs, draws=draws, seed=seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean=float(pairs.mean()), low=float(low), high=float(high))


def _bootstrap_means(values: npt.NDArray[np.float64], *, draws: int, seed: int) -> npt.NDArray[np.float64]:
    random = np.random.default_rng(seed)
    seeds, repetitions = values.shape
    means: npt.NDArray[np.float64] = np.zeros(draws)
    for _ in range(seeds):  # one after another, so that memory does not grow with seeds
        chosen = random.integers(seeds, size=(draws, 1))
        means += values[chosen, random.integers(repetitions, size=(draws, repetitions))].mean(axis=1) / seeds
    return means


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of the Wilcoxon signed-rank test over data sets, 1 where nothing differs.

    Args:
        first: one mean score of a method per data set.
        second: those of its rival on the same sets.

    >>> wilcoxon([0.9, 0.8, 0.7, 0.9, 0.6], [0.5, 0.5, 0.5, 0.8, 0.55])
    0.0625
    """
    pairs = np.round(_paired(first, second), DECIMALS)
    if not pairs.any():
        return 1.0
    from scipy import stats

    return float(stats.wilcoxon(pairs, alternative="two-sided").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, in the same order (Holm, 1979).

    The i-th smallest of m is multiplied by m + 1 − i, and none is below a smaller one. All that stay below a level are
    significant together: the chance of even one error is at most that level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    stepped = np.minimum(1, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    corrected = np.empty_like(values)
    corrected[order] = stepped
    found: list[float] = corrected.tolist()
    return found


@dataclass(frozen=True)
class Versus:
    """A method against a rival over all data sets that have both."""

    method: str
    rival: str
    sets: int
    wins: int
    losses: tuple[str, ...]  # names of the sets where the rival is above
    median: float  # of the differences, in the unit of the scores
    p: float  # Wilcoxon, two-sided
    holm: float  # the same, corrected for the number of rivals


def against(scores: ScoreTable, method: str, rival: str) -> Versus:
    """Summarise a method against one rival from their mean scores on every data set.

    >>> against({"wine": {"raw": 0.5, "scarf": 0.75}, "digits": {"raw": 0.5, "scarf": 0.25}}, "scarf", "raw")
    Versus(method='scarf', rival='raw', sets=2, wins=1, losses=('digits',), median=0.0, p=1.0, holm=1.0)
    """
    by_set = differences(scores, method, rival)
    if not by_set:
        raise UserError(f"no data set has both {method!r} and {rival!r}: there is nothing to compare.")
    values = list(by_set.values())
    p = wilcoxon(values, [0.0] * len(values))
    return Versus(
        method=method,
        rival=rival,
        sets=len(values),
        wins=sum(value > 0 for value in values),
        losses=tuple(name for name, value in by_set.items() if value < 0),
        median=float(np.median(values)),
        p=p,
        holm=p,
    )


def against_all(scores: ScoreTable, method: str, rivals: Sequence[str]) -> list[Versus]:
    """Summarise a method against several rivals, with p-values that are corrected for their number.

    >>> scores = {"wine": {"raw": 0.5, "fixed": 0.6, "scarf": 0.75}}
    >>> [(item.rival, item.p, item.holm) for item in against_all(scores, "scarf", ["raw", "fixed"])]
    [('raw', 1.0, 1.0), ('fixed', 1.0, 1.0)]
    """
    found = [against(scores, method, rival) for rival in rivals]
    return [replace(item, holm=p) for item, p in zip(found, holm([item.p for item in found]), strict=True)]


def _paired(first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the differences of two sets of scores that belong together one by one."""
    one, other = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if one.shape != other.shape:
        raise UserError(f"the scores have shapes {one.shape} and {other.shape}: pairs need the same number of each.")
    if one.size == 0:
        raise UserError("there are no scores: a comparison needs at least one pair.")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise UserError("some scores are not finite: only numbers can be compared.")
    return one - other
