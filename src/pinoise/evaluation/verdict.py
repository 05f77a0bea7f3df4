"""Is an embedding better than raw features? The answer in one sentence, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from pinoise.errors import UserError

Outcome = Literal["better", "worse", "level", "unknown"]

CONFIDENCE = 0.95


class Gap(NamedTuple):
    """The mean difference over paired draws, with an interval that is NaN where the draws cannot tell it."""

    mean: float
    low: float
    high: float


class Verdict(NamedTuple):
    """What came out, in a word and in a sentence."""

    outcome: Outcome
    sentence: str


def paired_gap(learned: Sequence[float], raw: Sequence[float]) -> Gap:
    """Return how much higher ``learned`` is than ``raw``: both are scores under the same draws of labels.

    The interval is Student's, over draws. Draws that all agree to the digit are one draw, and tell no interval.

    >>> [round(value, 2) for value in paired_gap([0.8, 0.9, 0.8], [0.7, 0.7, 0.7])]
    [0.13, -0.01, 0.28]
    >>> paired_gap([0.75, 0.75], [0.5, 0.5])
    Gap(mean=0.25, low=nan, high=nan)
    """
    if len(learned) != len(raw) or not len(raw):
        raise UserError(f"there are {len(learned)} and {len(raw)} draws: a paired difference needs the same number.")
    differences = np.subtract(learned, raw)
    mean = float(differences.mean())
    if len(set(learned)) == 1 and len(set(raw)) == 1:
        return Gap(mean, math.nan, math.nan)
    error = float(differences.std(ddof=1) / math.sqrt(len(differences)))
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(differences) - 1))
    return Gap(mean, mean - reach, mean + reach)


def judge(learned: Sequence[float], raw: Sequence[float], *, few: str, measured: bool = False) -> Verdict:
    """Say whether an embedding is better or worse than raw features, by how much and how sure.

    Args:
        learned: scores of the embedding, at most 1, one for every draw of labels.
        raw: those of raw features under the same draws.
        few: how many labels a draw has, in words.
        measured: whether the scores are R², and not accuracies.

    >>> judge([0.8, 0.9, 0.85], [0.7, 0.7, 0.7], few="10 labels per class").sentence
    'Better than raw features: with 10 labels per class, accuracy is 15.0 points higher (95 % interval 2.6 to 27.4).'
    >>> judge([0.8, 0.7, 0.75], [0.7, 0.8, 0.7], few="10 labels per class").outcome
    'level'
    >>> judge([0.8, 0.7], [0.8, 0.7], few="10 labels per class").sentence
    'Not told apart from raw features: with 10 labels per class, accuracy is the same in every draw of labels.'
    """
    gap = paired_gap(learned, raw)
    points = Gap(*(100 * value for value in gap))
    what = f"with {few}, {'R²' if measured else 'accuracy'} is"
    higher = f"{abs(points.mean):.1f} points {'higher' if points.mean >= 0 else 'lower'}"
    if np.array_equal(learned, raw):
        return Verdict("level", f"Not told apart from raw features: {what} the same in every draw of labels.")
    if math.isnan(gap.low):
        return Verdict("level", f"How sure cannot be told: {what} {higher}, and all draws have the same labels.")
    if gap.low > 0 or gap.high < 0:
        outcome: Outcome = "better" if gap.mean > 0 else "worse"
        low, high = sorted((abs(points.low), abs(points.high)))
        interval = f"({CONFIDENCE:.0%} interval {low:.1f} to {high:.1f})".replace("%", " %")
        return Verdict(outcome, f"{outcome.title()} than raw features: {what} {higher} {interval}.")
    interval = f"({CONFIDENCE:.0%} interval {points.low:+.1f} to {points.high:+.1f})".replace("%", " %")
    return Verdict("level", f"Not told apart from raw features: {what} {higher} {interval.replace('-', '−')}.")
