"""The tables of an item: fits by the machinery of comparisons, and facts of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pinoise.choices import SCORES
from pinoise.data.dataset import Dataset
from pinoise.experiments.cache import CellCache
from pinoise.experiments.fitting import fit_all
from pinoise.experiments.plans import plan
from pinoise.experiments.recipes import RECIPES
from pinoise.experiments.results import Cell
from pinoise.paper.catalogue import entry
from pinoise.paper.reproduce.costs import cost_columns
from pinoise.paper.reproduce.data import UsedSet
from pinoise.paper.reproduce.masks import random_masks
from pinoise.paper.reproduce.outcome import OutcomeLine
from pinoise.paper.reproduce.paper import Item, Row, SetGroup
from pinoise.training.callbacks import Reporter
from pinoise.training.config import merge


def count_fits(item: Item, keys: Sequence[str], seeds: Sequence[int]) -> int:
    """Return the number of fits of an item on some of its data sets."""
    return sum(len(row.recipes) * len(seeds) for key in keys for _, row in item.rows_on(key))


def fit_lines(
    item: Item,
    scale: str,
    used: UsedSet,
    data: Dataset,
    seeds: Sequence[int],
    *,
    cache: CellCache | None,
    sam: Path | None,
    reporter: Callable[[str], Reporter],
    tell: Callable[[int], None],
) -> Iterator[OutcomeLine]:
    """Fit the rows of a data set and yield their lines.

    Args:
        item: the table.
        scale: the name of its scale.
        used: the data set.
        data: its rows.
        seeds: one fit for each.
        cache: where finished fits are kept, and looked for first.
        sam: weights of a Segment-Anything model; masks of a random one if None.
        reporter: makes the reporter of a fit from its title.
        tell: called with the number of fits that are finished.
    """
    scores = [column for column in item.columns if column in SCORES]
    for group, row in item.rows_on(used.key):
        settings, usual = item.settings_of(group, row, scale)
        tried: dict[str, list[Cell]] = {}
        for recipe in row.recipes:
            shared = merge(settings, _background(recipe, data, sam))
            cells = fit_all(
                [data],
                plan([recipe], seeds, settings=shared, usual=usual),
                embeddings=_embeddings(group, row),
                scores=scores,
                cache=cache,
                reporter=reporter,
            )
            tried[recipe] = [cell for cell in cells if cell.embedding == row.embedding]
            tell(len(seeds))
        best = max(tried, key=lambda recipe: fmean(_values(tried[recipe], scores[0])))
        yield OutcomeLine(
            data=used.key,
            group=group.title,
            title=row.title,
            method=best,
            paper=row.paper.get(used.key, {}),
            ours={
                **{score: _values(tried[best], score) for score in scores},
                **cost_columns(item, scale, used.key, group, row, cache=cache),
            },
            above=row.above,
            flags=tuple(dict.fromkeys(flag for cell in tried[best] for flag in cell.flags)),
            note=row.notes.get(used.key),
        )


def data_lines(item: Item, used: dict[str, UsedSet | None]) -> Iterator[OutcomeLine]:
    """Yield the sizes of data sets as their publishers give them, and of those that are here."""
    for group in item.groups:
        for row in group.rows:
            for key, paper in row.paper.items():
                facts = [entry(name) for name in (item.data[key].source, item.data[key].score_on) if name is not None]
                # Parts of one set may be entries of their own: their training rows overlap, so that the largest counts.
                rows = max(fact.rows[0] for fact in facts) + max(fact.rows[1] for fact in facts)
                ours = {"rows": [rows], "classes": [max(fact.classes for fact in facts)]}
                here = used[key]
                name = "" if here is None else here.name
                yield OutcomeLine(key, group.title, row.title, name, paper, {**ours, "here": [_rows_of(name)]})


def _rows_of(name: str) -> int:
    return sum(entry(name).rows) if name else 0


def _embeddings(group: SetGroup, row: Row) -> tuple[Any, ...]:
    """Return the embeddings that rows of a group want of one fit, so that the cache has them all."""
    return tuple(dict.fromkeys(other.embedding for other in group.rows if other.recipes == row.recipes))


def _values(cells: Sequence[Cell], score: str) -> list[float]:
    return [round(100 * getattr(cell, score), 4) for cell in cells]


def _background(recipe: str, data: Dataset, sam: Path | None) -> dict[str, Any]:
    """Return what the view of the background needs: weights of a model, or masks."""
    made_of = RECIPES[recipe].settings or {}
    if made_of.get("views", {}).get("noise") != "background":
        return {}
    options = {"masks": random_masks(data.train)} if sam is None else {"weights": sam}
    return {"views": {"noise": options}}
