"""Mean and median of numbers that come in pieces, exactly as of the whole, in memory that does not grow with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pinoise.data.options import MissingPolicy

Floats = npt.NDArray[np.float64]

_BLOCK = 1 << 16  # numbers summed at a time, wherever pieces begin, so that a sum rounds the same
_SAMPLE = 1 << 14  # numbers that tell where the median may lie
_MARGIN = 2.0  # of that place, in √sample positions, four standard deviations
_KEPT = 1 << 15  # different numbers around the median that are counted one by one
_BINS = 1 << 10


class Fill:
    """What fills the gaps of a column under a policy, learned in one pass over its numbers, or a few for the median.

    >>> fill = Fill("median")
    >>> for piece in (np.array([3.0, 9.0]), np.array([1.0, 4.0])):
    ...     fill.add(piece)
    >>> while fill.again():
    ...     for piece in (np.array([3.0, 9.0]), np.array([1.0, 4.0])):
    ...         fill.add(piece)
    >>> fill.value, fill.count, fill.low, fill.high
    (3.5, 4, 1.0, 9.0)
    """

    def __init__(self, policy: MissingPolicy) -> None:
        """Learn by this policy; ``error`` and ``zero`` fill with 0."""
        self.count, self.low, self.high = 0, math.inf, -math.inf
        self.value = 0.0
        self._middle = {"mean": _Mean, "median": _Median}.get(policy)
        self._learning: Any = None if self._middle is None else self._middle()
        self._passes = 0

    def add(self, present: Floats) -> None:
        """Take numbers, none of them NaN; the same ones in the same order in every pass."""
        if not len(present):
            return
        if self._passes == 0:
            self.count += len(present)
            self.low, self.high = min(self.low, float(present.min())), max(self.high, float(present.max()))
        if self._learning is not None:
            self._learning.add(present)

    def again(self) -> bool:
        """End a pass, and return whether another one is needed."""
        self._passes += 1
        if self._learning is None or not self.count:
            return False
        if self._learning.again(self.count, self.low, self.high):
            return True
        self.value, self._learning = self._learning.value, None
        return False


class _Mean:
    value = 0.0

    def __init__(self) -> None:
        self._sums: list[float] = []
        self._rest = np.empty(0)

    def add(self, values: Floats) -> None:
        values = np.concatenate([self._rest, values])
        whole = len(values) // _BLOCK * _BLOCK
        self._sums += [float(values[start : start + _BLOCK].sum()) for start in range(0, whole, _BLOCK)]
        self._rest = values[whole:]

    def again(self, count: int, low: float, high: float) -> bool:
        self.value = math.fsum([*self._sums, float(self._rest.sum())]) / count
        return False


class _Median:
    """A sample says about where the median lies; in later passes the numbers there are counted."""

    value = 0.0

    def __init__(self) -> None:
        self._only: Floats | None = None  # the first piece, for as long as it is the only one
        self._seen, self._stride = 0, 1
        self._sample: Floats = np.empty(0)
        self._search: _Search | None = None

    def add(self, values: Floats) -> None:
        if self._search is not None:
            self._search.add(values)
            return
        self._only = values if self._seen == 0 else None
        self._sample = np.concatenate([self._sample, values[-self._seen % self._stride :: self._stride]])
        self._seen += len(values)
        while len(self._sample) > 2 * _SAMPLE:
            self._sample, self._stride = self._sample[::2].copy(), 2 * self._stride

    def again(self, count: int, low: float, high: float) -> bool:
        if self._only is not None:
            self.value = _of_whole(self._only)
            return False
        if self._search is None:
            near = np.sort(self._sample)
            margin = int(_MARGIN * math.sqrt(len(near))) + 1
            first, last = max(0, len(near) // 2 - margin), min(len(near) - 1, len(near) // 2 + margin)
            self._search = _Search(float(near[first]), float(near[last]))
            return True
        ranks = (count - 1) // 2, count // 2
        found = self._search.end(ranks, low, high)
        if isinstance(found, _Search):
            self._search = found
            return True
        self.value = found[1] if count % 2 else (found[0] + found[1]) / 2
        return False


def _of_whole(values: Floats) -> float:
    middle = len(values) // 2  # np.median takes ten times as long for a short column, of which there may be many
    low, high = np.partition(values, [middle - 1, middle])[[middle - 1, middle]]
    return float(high if len(values) % 2 else (low + high) / 2)


class _Search:
    """One pass that looks for numbers of given rank between two bounds."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._below = self._inside = 0
        self._values: Floats = np.empty(0)  # the different numbers between the bounds, and how often each comes
        self._counts: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._bins: npt.NDArray[np.int64] | None = None  # how many are in each bin instead, where they are too many
        self._least, self._most = np.full(_BINS, np.inf), np.full(_BINS, -np.inf)  # of each bin

    def add(self, values: Floats) -> None:
        self._below += int(np.count_nonzero(values < self._low))
        between = values[(values >= self._low) & (values <= self._high)]
        self._inside += len(between)
        if self._bins is not None:
            self._count(self._bins, between, np.ones(len(between), np.int64))
            return
        every = np.concatenate([self._values, between])
        ones = np.concatenate([self._counts, np.ones(len(between), np.int64)])
        self._values, place = np.unique(every, return_inverse=True)
        self._counts = np.bincount(place, weights=ones, minlength=len(self._values)).astype(np.int64)
        if len(self._values) > _KEPT:
            self._bins = np.zeros(_BINS, np.int64)
            self._count(self._bins, self._values, self._counts)
            self._values, self._counts = np.empty(0), np.empty(0, np.int64)

    def end(self, ranks: tuple[int, int], lowest: float, highest: float) -> tuple[float, float] | _Search:
        """Return the numbers of these ranks, or the search that comes nearer to them."""
        first, last = ranks[0] - self._below, ranks[1] - self._below
        if first < 0 or last >= self._inside:  # the sample was not like the rest
            return _Search(lowest if first < 0 else self._low, highest if last >= self._inside else self._high)
        if self._bins is not None:
            places = np.searchsorted(np.cumsum(self._bins), [first, last], side="right")
            if places[0] == places[1]:
                return _Search(float(self._least[places[0]]), float(self._most[places[0]]))
            # The ranks are neighbours: the last number of one bin, and the first of the next that is not empty.
            return float(self._most[places[0]]), float(self._least[places[1]])
        places = np.searchsorted(np.cumsum(self._counts), [first, last], side="right")
        return float(self._values[places[0]]), float(self._values[places[1]])

    def _count(self, bins: npt.NDArray[np.int64], values: Floats, counts: npt.NDArray[np.int64]) -> None:
        width = self._high / _BINS - self._low / _BINS
        places = np.clip((values - self._low) / width, 0, _BINS - 1).astype(np.int64)
        np.add.at(bins, places, counts)
        np.minimum.at(self._least, places, values)
        np.maximum.at(self._most, places, values)
