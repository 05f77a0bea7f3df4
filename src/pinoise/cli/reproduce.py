"""``pinoise reproduce``: the paper's tables and figures, its numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pinoise.cli.console import note, print_json, print_table, reporters, say
from pinoise.cli.options import CacheOption, ForceOption, JsonOption
from pinoise.errors import UserError, either, unknown_choice
from pinoise.experiments.recipes import MOST_SEEDS
from pinoise.paper.reproduce.paper import SCALE, SCALES, item_names
from pinoise.training.processes import STOPPED

_SEEDS = "How many seeds every fit is repeated with; the scale's if not given."


def reproduce(
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM...", help=f"{either(item_names())}; several in a row.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the items, their data and the time they take.")] = False,
    scale: Annotated[str, typer.Option("--scale", help=f"{either(SCALES)}; the first has the paper's sizes.")] = SCALE,
    seeds: Annotated[int | None, typer.Option(min=1, max=MOST_SEEDS, help=_SEEDS)] = None,
    html: Annotated[Path | None, typer.Option("--html", help="A page to write, with pictures.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the result of each item as JSON, and its pictures.")
    ] = None,
    sam: Annotated[
        Path | None,
        typer.Option("--sam", help="Weights of Segment-Anything for T7 and T8; masks of a random model if not given."),
    ] = None,
    cache: CacheOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Run tables and figures of the paper, and print its numbers beside ours.

    Example: `pinoise reproduce T2 --scale small --html t2.html`
    """
    if scale not in SCALES:
        raise unknown_choice("scale", scale, SCALES)
    items = items or []
    if not items and not list_:
        raise UserError("name an item, such as T2: 'pinoise reproduce --list' lists them.")
    if list_:
        _print_list(items or item_names(), scale, as_json=json)
        return
    from pinoise.paper.reproduce.command import as_dict, run_items
    from pinoise.paper.reproduce.layout import tables
    from pinoise.paper.reproduce.verdict import verdict

    asked: dict[str, Any] = {"force": force, "sam": sam, "cache": cache, "scale": scale, "seeds": seeds}
    with reporters(epochs=False) as make:
        ran, complete = run_items(items, page=html, folder=out, **asked, reporter=make, note=note)
    if json:
        print_json(as_dict(ran))
    for running in () if json else ran:
        note(*running.found.notes)
        print(f"{running.found.heading}\n")
        for table in tables(running.found):
            print_table(table.titles, table.rows, words=(0, len(table.titles) - 1))
            print()
        print(f"{verdict(running.found)}\n")
    if not complete:
        say("stopped; no file is written, and the same command goes on from here")
        raise typer.Exit(STOPPED)


def _print_list(names: Sequence[str], scale: str, *, as_json: bool) -> None:
    from pinoise.paper.reproduce.data import listing, states

    found = listing(names, scale)
    if as_json:
        print_json(found)
        return
    rows = [[one["item"], one["title"], scale, states(one["data"]), one["time"]] for one in found]
    print_table(["item", "title", "scale", "data", "time"], rows, words=(0, 1, 2, 3, 4))
    print("'stand-in': a smaller or similar set is used; 'absent': set PINOISE_DATA to the folder with the files.")
