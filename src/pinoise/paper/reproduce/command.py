"""What ``pinoise reproduce`` does: check what would be written, run items, and write what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pinoise.files import cache_folder, check_is_file, check_output, check_writable
from pinoise.paper.reproduce.page import write_reproductions
from pinoise.paper.reproduce.paper import find_item
from pinoise.paper.reproduce.run import ItemRun, reproduce
from pinoise.paper.reproduce.verdict import verdict
from pinoise.training.callbacks import Reporter


def run_items(
    names: Sequence[str],
    *,
    page: Path | None,
    folder: Path | None,
    force: bool,
    sam: Path | None,
    cache: Path | None,
    scale: str,
    seeds: int | None,
    reporter: Callable[[str], Reporter],
    note: Callable[[str], None],
) -> tuple[list[ItemRun], bool]:
    """Run items and write what was found; Ctrl-C keeps those that are finished, of which no file is written.

    Args:
        names: of the items.
        page: the HTML file to write.
        folder: for the result of each item and its pictures.
        force: whether files that exist are replaced.
        sam: see ``reproduce``, as for the others.
        cache: the folder of finished fits; the user's if None.
        scale: of all items.
        seeds: how many.
        reporter: makes the reporter of a fit.
        note: called with sentences about the data.

    Returns:
        What was run, and whether it is all that was asked for.
    """
    for name in names:
        find_item(name)
    if sam is not None:
        check_is_file(sam)
    _check_outputs(names, page, folder, force=force)
    found: list[ItemRun] = []
    for name in names:
        one = reproduce(
            name,
            cache=cache or cache_folder(),
            scale=scale,
            seeds=seeds,
            sam=sam,
            reporter=reporter,
            note=note,
            keep_partial=True,
        )
        found.append(one)
        if not one.found.is_complete:
            return found, False
    if page is not None or folder is not None:
        write_reproductions(found, page=page, folder=folder)
    return found, True


def as_dict(found: Sequence[ItemRun]) -> dict[str, Any]:
    """Return what was found as plain values for JSON."""
    return {"items": [{**one.found.as_dict(), "verdict": verdict(one.found)} for one in found]}


def _check_outputs(names: Sequence[str], page: Path | None, folder: Path | None, *, force: bool) -> None:
    """Refuse, before any work, outputs that cannot or must not be written."""
    if page is not None:
        check_output(page, force=force)
        check_writable(page.parent, what="a page")
    if folder is not None:
        check_writable(folder, what="results")
        for name in names:
            for path in (folder / f"{name}.json", *folder.glob(f"{name}-*.png"), *folder.glob(f"{name}-*.svg")):
                check_output(path, force=force)
