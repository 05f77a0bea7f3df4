"""Whether one method is better than another: on one data set, and over many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

ScoreTable = Mapping[str, Mapping[str, float]]  # data set to method to score; higher is better

DECIMALS = 10  # beyond these, scores count as equal: sums in another order differ in their last bits


@dataclass(frozen=True)
class Interval:
    """A mean difference with the bounds of its confidence interval."""

    mean: float
    low: float
    high: float


def bootstrap_mean(
    gaps: npt.NDArray[np.float64], *, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return the mean of differences on one data set, with a percentile bootstrap interval.

    Repetitions of one seed share an encoder and are alike, so seeds are drawn first and repetitions inside each of
    them. With one seed the interval says nothing about other seeds.

    Args:
        gaps: how far a method is above its rival with the same seeds and labelled rows, (seeds, repetitions).
        draws: how many bootstrap samples.
        seed: of the bootstrap.
        level: the share of bootstrap means that the interval holds.

    >>> bootstrap_mean(np.array([[0.25, 0.25], [0.25, 0.25]]))
    Interval(mean=0.25, low=0.25, high=0.25)
    """
    random = np.random.default_rng(seed)
    seeds, repetitions = gaps.shape
    means: npt.NDArray[np.float64] = np.zeros(draws)
    for _ in range(seeds):  # one after another, so that memory does not grow with seeds
        chosen = random.integers(seeds, size=(draws, 1))
        means += gaps[chosen, random.integers(repetitions, size=(draws, repetitions))].mean(axis=1) / seeds
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean=float(gaps.mean()), low=float(low), high=float(high))


def wilcoxon(gaps: npt.ArrayLike) -> float:
    """Return the two-sided p-value of the Wilcoxon signed-rank test over data sets, 1 where nothing differs.

    Args:
        gaps: how far a method is above its rival on each data set, in mean scores.

    >>> wilcoxon([0.4, 0.3, 0.2, 0.1, 0.05])
    0.0625
    """
    values = np.round(np.asarray(gaps, dtype=np.float64), DECIMALS)
    if not values.any():
        return 1.0
    from scipy import stats

    return float(stats.wilcoxon(values, alternative="two-sided").pvalue)


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
    shared = {name: row for name, row in scores.items() if method in row and rival in row}
    gaps = np.round([row[method] - row[rival] for row in shared.values()], DECIMALS)
    return Versus(
        method=method,
        rival=rival,
        sets=len(gaps),
        wins=int((gaps > 0).sum()),
        losses=tuple(name for name, gap in zip(shared, gaps, strict=True) if gap < 0),
        median=float(np.median(gaps)),
        p=(p := wilcoxon(gaps)),
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
