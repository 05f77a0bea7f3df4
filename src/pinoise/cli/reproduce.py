"""``pinoise reproduce``: the paper's tables and figures, its numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinoise.choices import listed
from pinoise.cli.console import STOPPED, note, print_json, print_table, reporters, say
from pinoise.cli.options import ForceOption, JsonOption
from pinoise.errors import UserError
from pinoise.experiments.recipes import MOST_SEEDS
from pinoise.paper.reproduce.paper import SCALE, SCALES, find_item, item_names

if TYPE_CHECKING:
    from pinoise.paper.reproduce.run import Running


def reproduce(
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM...", help=f"{listed(item_names())}; several in a row.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the items, their data and the time they take.")] = False,
    scale: Annotated[str, typer.Option("--scale", help=f"{listed(SCALES)}; the first has the paper's sizes.")] = SCALE,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds every fit is repeated with; the scale's if not given.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="A page to write, with pictures.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the result of each item as JSON, and its pictures.")
    ] = None,
    sam: Annotated[
        Path | None,
        typer.Option("--sam", help="Weights of Segment-Anything for T7 and T8; masks of a random model if not given."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="Where finished fits are kept, so that a reproduction can be stopped and go on."),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Run tables and figures of the paper, and print its numbers beside ours.

    Example: `pinoise reproduce T2 --scale small --html t2.html`
    """
    if scale not in SCALES:
        raise UserError(f"--scale is {scale!r}: it must be {listed(SCALES)}.")
    if list_:
        _list(items or list(item_names()), scale, as_json=json)
        return
    if not items:
        raise UserError("name an item, such as T2: 'pinoise reproduce --list' lists them.")
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds is {seeds}: give a number of seeds from 1 to {MOST_SEEDS}.")
    for name in items:
        find_item(name)
    _check_files(items, html, out, sam, force=force)
    finished = _run(items, cache, scale=scale, seeds=seeds, sam=sam)
    stopped = any(not running.found.is_complete for running in finished) or len(finished) < len(items)
    if not stopped and (html is not None or out is not None):
        from pinoise.paper.reproduce.page import write_reproductions

        write_reproductions(finished, page=html, folder=out)
    _tell(finished, as_json=json)
    if stopped:
        say("stopped; no file is written, and the same command goes on from here")
        raise typer.Exit(STOPPED)


def _list(names: list[str], scale: str, *, as_json: bool) -> None:
    from pinoise.paper.reproduce.data import presence

    found: list[dict[str, Any]] = []
    for item in map(find_item, names):
        entry = {"item": item.name, "title": item.title, "label": item.label, "kind": item.kind, "scale": scale}
        found.append({**entry, "data": presence(item, scale), "time": item.scales[scale].time})
    if as_json:
        print_json(found)
        return
    print_table(
        ["item", "title", "scale", "data", "time"],
        [[one["item"], one["title"], scale, _states(one["data"]), one["time"]] for one in found],
        words=(0, 1, 2, 3, 4),
    )
    print("'stand-in': a smaller or similar set is used; 'absent': set PINOISE_DATA to the folder that has the files.")


def _states(data: dict[str, str]) -> str:
    """Return the data sets by where they are.

    >>> _states({"HAR": "stand-in hapt561", "Fashion-MNIST": "present", "STL-10": "present"})
    'present Fashion-MNIST, STL-10; stand-in HAR'
    """
    groups: dict[str, list[str]] = {"present": [], "stand-in": [], "absent": []}
    for title, state in data.items():
        groups[state.partition(" ")[0]].append(title)
    return "; ".join(f"{state} {', '.join(titles)}" for state, titles in groups.items() if titles)


def _check_files(items: list[str], html: Path | None, out: Path | None, sam: Path | None, *, force: bool) -> None:
    """Refuse, before any work, weights that cannot be read, and outputs that cannot or must not be written."""
    from pinoise.files import check_is_file, check_output, check_writable

    if sam is not None:
        check_is_file(sam)
    if html is not None:
        check_output(html, force=force)
        check_writable(html.parent, what="a page")
    if out is not None:
        check_writable(out, what="results")
        for name in items:
            for path in (out / f"{name}.json", *out.glob(f"{name}-*.png")):
                check_output(path, force=force)


def _run(items: list[str], cache: Path | None, **asked: Any) -> list[Running]:
    from pinoise.files import cache_folder
    from pinoise.paper.reproduce.run import reproduce as run

    finished = []
    with reporters(epochs=False) as make:
        for name in items:
            finished.append(
                run(name, cache=cache or cache_folder(), reporter=make, note=note, keep_partial=True, **asked)
            )
            if not finished[-1].found.is_complete:
                break
    return finished


def _tell(finished: list[Running], *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        print_json({"items": [{**one.found.as_dict(), "verdict": _verdict(one)} for one in finished]})
        return
    for running in finished:
        _print(running)


def _verdict(running: Running) -> str:
    from pinoise.paper.reproduce.verdict import verdict

    return verdict(running.found)


def _print(running: Running) -> None:
    from pinoise.paper.reproduce.layout import tables

    found = running.found
    for sentence in found.notes:
        note(sentence)
    seeds = "" if len(found.seeds) == 1 else f", {len(found.seeds)} seeds"
    print(f"{found.item.name}: {found.item.title} ({found.item.label}; scale {found.scale}{seeds})\n")
    for table in tables(found):
        print_table(table.titles, table.rows, words=(0, len(table.titles) - 1))
        print()
    print(f"{_verdict(running)}\n")
