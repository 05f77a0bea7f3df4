"""The columns of cost: seconds of an epoch, operations and memory, of a base or of what noise adds to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache as remembered
from importlib.metadata import version
from typing import Any

from pinoise.experiments.cache import CellCache, by_content
from pinoise.experiments.fitting import CELL_FORMAT
from pinoise.experiments.plans import plan
from pinoise.paper.catalogue import Entry, entry
from pinoise.paper.cost import cost_of, without_noise
from pinoise.paper.rehearsal import Rehearsal
from pinoise.paper.reproduce.outcome import OutcomeLine
from pinoise.paper.reproduce.paper import COSTS, Item, Row, SetGroup
from pinoise.training.config import Settings, parse_settings


def cost_lines(item: Item, scale: str, keys: Sequence[str], *, cache: CellCache | None) -> Iterator[OutcomeLine]:
    """Yield the lines of a table of cost. They follow from the facts of the catalogue: no data is read."""
    for key in keys:
        for group, row in item.rows_on(key):
            ours = cost_columns(item, scale, key, group, row, cache=cache)
            paper = row.paper.get(key, {})
            yield OutcomeLine(
                key, group.title, row.title, row.recipes[0], paper, ours, row.above, note=row.notes.get(key)
            )


def cost_columns(
    item: Item, scale: str, key: str, group: SetGroup, row: Row, *, cache: CellCache | None
) -> dict[str, list[float]]:
    """Return the columns of cost that an item has, for a row that the paper gives them for.

    They are those of the paper's own networks, batch and data at every scale. The cost of a row that is compared with
    another one is what its noise adds; a table without operations gives the memory of the whole.
    """
    has = set(item.columns) & row.paper.get(key, {}).keys() & set(item.scales[scale].costs)
    wanted = [column for column in COSTS if column in has]
    if not wanted:
        return {}
    if wanted == ["flops"]:  # a step, which takes longer to count, is not needed
        return {"flops": [paper_flops(item, key, group, row)]}
    planned, facts = _planned(item, group, row), entry(item.data[key].source)
    share = "whole" if not item.costs_are_added else "base" if row.above is None else "added"
    measured = _measured(planned, facts, timed_steps=item.scales[scale].timed_steps, cache=cache)[share]
    found = {
        "seconds": measured["seconds_per_epoch"],
        "flops": (row.counted or group.counted) * measured["flops_sample"],
        "memory": measured["memory_bytes"] / 1e9,
    }
    return {column: [found[column]] for column in wanted if found[column] is not None}


@remembered  # many rows of the paper's tables have the same base
def _operations(parts: str, shape: tuple[int, ...]) -> int:
    """Return the operations of one sample through the parts of a model, given as JSON."""
    return Rehearsal(parse_settings(json.loads(parts)), shape, rows=2).count_sample().total


def paper_flops(item: Item, key: str, group: SetGroup, row: Row) -> float:
    """Return the operations of a row's networks at the paper's size, for as many samples as the paper counts.

    >>> from pinoise.paper.reproduce.paper import find_item
    >>> item = find_item("T9")
    >>> (group, row), *_ = item.rows_on("stl10")
    >>> f"{paper_flops(item, 'stl10', group, row):.2e}"
    '2.57e+12'
    """
    planned, shape = _planned(item, group, row), entry(item.data[key].source).shape
    base, whole = (
        _operations(each.model_dump_json(exclude={"data", "training"}), shape)
        for each in (without_noise(planned), planned)
    )
    return (row.counted or group.counted) * (base if row.above is None else whole - base)


def _planned(item: Item, group: SetGroup, row: Row) -> Settings:
    settings, usual = item.settings_of(group, row, "paper")
    (planned,) = plan(row.recipes, [0], settings=settings, usual=usual).values()
    return planned


def _measured(settings: Settings, facts: Entry, *, timed_steps: int, cache: CellCache | None) -> dict[str, Any]:
    """Return the cost of a configuration, from the cache if it was found before."""
    parts = {
        "cost": by_content(settings.model_dump()),
        "shape": facts.shape,
        "rows": facts.rows[0],
        "steps": timed_steps,
        "pinoise": version("pinoise"),
        "format": CELL_FORMAT,
    }
    found = None if cache is None else cache.get(parts)
    if found is None:
        found = cost_of(settings, facts.shape, facts.rows[0], timed_steps=timed_steps).as_dict()
        if cache is not None:
            cache.put(parts, found)
    return found
