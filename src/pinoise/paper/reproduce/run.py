"""A table or figure of the paper in one call."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from pinoise.errors import UserError, unknown_choice
from pinoise.experiments.cache import CellCache
from pinoise.modes import flushed_denormals
from pinoise.paper.reproduce.costs import cost_lines
from pinoise.paper.reproduce.data import UsedSet, used_for
from pinoise.paper.reproduce.opening import open_used
from pinoise.paper.reproduce.outcome import Reproduction, size_of
from pinoise.paper.reproduce.paper import SCALE, SCALES, find_item
from pinoise.paper.reproduce.runs import TrainedRun, curve_line, curves_of, noise_line, train_rows
from pinoise.paper.reproduce.tables import count_fits, data_lines, fit_lines
from pinoise.training.callbacks import Quiet, Reporter
from pinoise.training.folder import describe_environment


class ItemRun:
    """An item as it is run: what is found so far, and the runs behind its pictures."""

    def __init__(self, found: Reproduction) -> None:
        self.found = found
        self.runs: list[TrainedRun] = []


def reproduce(
    name: str,
    *,
    scale: str = SCALE,
    seeds: int | None = None,
    cache: Path,
    sam: Path | None = None,
    reporter: Callable[[str], Reporter] = lambda _: Quiet(),
    note: Callable[[str], None] = lambda _: None,
    keep_partial: bool = False,
) -> ItemRun:
    """Run a table or figure of the paper and set its numbers beside ours.

    Args:
        name: of the item, such as T2.
        scale: ``paper``, ``small`` or ``smoke``.
        seeds: how many; those of the scale if None.
        cache: a folder that keeps finished fits, so that a reproduction can be stopped and go on.
        sam: weights of a Segment-Anything model, for the tables that compare with it.
        reporter: makes the reporter of a fit from its title.
        note: called with sentences about the data.
        keep_partial: whether Ctrl-C returns what is finished instead of raising.
    """
    if scale not in SCALES:
        raise unknown_choice("scale", scale, SCALES)
    item = find_item(name).part(scale)
    chosen = {key: used_for(key, item.data[key]) for key in item.sets(scale)}
    here = [used for used in chosen.values() if used is not None]
    absent = [item.data[key].title for key, used in chosen.items() if used is None]
    fits = item.kind not in ("data", "cost")
    if not here and fits:
        raise UserError(
            f"{name} needs {', '.join(absent)}, of which neither the data nor a stand-in is here: set PINOISE_DATA to "
            "the folder that has them."
        )
    numbers = range(item.scales[scale].seeds if seeds is None else seeds)
    keys = [used.key for used in here] if fits else list(chosen)
    total = count_fits(item, keys, numbers) if fits else sum(len(list(item.rows_on(key))) for key in keys)
    found = Reproduction(item, scale, list(numbers), here if fits else [], total, environment=describe_environment())
    if fits:
        found.notes += [f"{title} is not here, and nothing stands in for it" for title in absent]
        found.notes += [
            f"left out at this scale: {group.title}" for group in find_item(name).groups if scale in group.left_out
        ]
        found.notes += [f"{used.name} stands in for {used.title}" for used in here if used.is_stand_in]
    running = ItemRun(found)
    try:
        with flushed_denormals():
            if not fits:
                _add_facts(found, chosen, cache=CellCache(cache / "cells"))
            elif item.kind in ("noise", "curves"):
                _add_runs(running, folder=cache / "runs", reporter=reporter, note=note)
            else:
                _add_scores(found, cache=CellCache(cache / "cells"), sam=sam, reporter=reporter, note=note)
    except KeyboardInterrupt:
        if not keep_partial:
            raise
    return running


def _add_facts(found: Reproduction, chosen: dict[str, UsedSet | None], *, cache: CellCache) -> None:
    """Add what follows from the catalogue and from configurations: sizes of data sets, or costs."""
    if found.item.kind == "data":
        lines = data_lines(found.item, chosen)
    else:
        lines = cost_lines(found.item, found.scale, list(chosen), cache=cache)
    for line in lines:  # one by one, so that an interrupt keeps what is finished
        found.lines.append(line)
        found.finished += 1


def _add_scores(
    found: Reproduction,
    *,
    cache: CellCache,
    sam: Path | None,
    reporter: Callable[[str], Reporter],
    note: Callable[[str], None],
) -> None:
    """Add a table of accuracies, data set by data set."""
    item = found.item

    def tell(fits: int) -> None:
        found.finished += fits

    if sam is None and any("aug-background" in row.recipes for key in item.data for _, row in item.rows_on(key)):
        found.notes.append("masks are those of a Segment-Anything model with random weights")
    for used in found.used:
        data = open_used(used, item, found.scale)
        found.sizes[used.key] = size_of(data)
        for sentence in data.notes:
            note(f"{used.title}: {sentence}")
        lines = fit_lines(
            item, found.scale, used, data, found.seeds, cache=cache, sam=sam, reporter=reporter, tell=tell
        )
        for line in lines:
            found.lines.append(line)


def _add_runs(
    running: ItemRun, *, folder: Path, reporter: Callable[[str], Reporter], note: Callable[[str], None]
) -> None:
    """Add what is measured in the runs behind a picture or curves."""
    found, item = running.found, running.found.item
    for used in found.used:
        trained = train_rows(item, found.scale, used, found.seeds, folder=folder, reporter=reporter, note=note)
        for _, runs in groupby(trained, key=lambda one: one.row.title):
            of_row = []
            for one in runs:
                of_row.append(one)
                found.finished += 1
            running.runs += of_row
            found.sizes[used.key] = size_of(of_row[0].run.own_data())
            if item.kind == "noise":
                found.lines.append(noise_line(of_row))
            else:
                found.lines.append(curve_line(item, of_row))
                found.curves += curves_of(item, of_row)
