"""Data sets as an item sees them at a scale."""

from __future__ import annotations

from dataclasses import replace

from pinoise.data.dataset import Dataset
from pinoise.data.options import ReadOptions
from pinoise.experiments.sources import ScoredElsewhere, open_compared, sample_rows
from pinoise.paper.reproduce.data import UsedSet
from pinoise.paper.reproduce.paper import Item


def open_used(used: UsedSet, item: Item, scale: str) -> Dataset:
    """Read the data set and cut it to the size of a scale."""
    options = ReadOptions(size=item.pixels(used.key, scale))
    (data,) = open_compared([used.name], options, score_on=used.score_on)
    train, test = item.scales[scale].rows, item.scales[scale].test_rows
    if isinstance(data, ScoredElsewhere):
        return replace(_fewer(data, train, None), scored=_fewer(data.scored, train, test))  # type: ignore[call-arg]
    return _fewer(data, train, test)


def _fewer(data: Dataset, train: int | None, test: int | None) -> Dataset:
    most = len(data.train) if data.test is None else max(len(data.train), len(data.test))
    return sample_rows(data, train=train or most, test=test or most)
