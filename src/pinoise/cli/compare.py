"""``pinoise compare``: methods side by side on one's own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinoise.cli.console import SCORE_TITLES, note, on_terminal, print_json, print_table, reporters, say
from pinoise.cli.options import (
    BatchOption,
    DeviceOption,
    JsonOption,
    LabelOption,
    RowsOption,
    SetOption,
    assignments,
)
from pinoise.errors import UserError

if TYPE_CHECKING:
    from pinoise.experiments import Cell, Line


def compare(
    data: Annotated[list[str], typer.Option("--data", help="Data sets of the catalogue, or files; several in a row.")],
    label: LabelOption = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            help="raw, untrained, fixed, scarf, vime, dacl, modals, simcl, clae, pinda-paper, pinda-paper-mean, "
            "pinda-paper-clae; several in a row. raw and untrained are always there.",
        ),
    ] = None,
    seeds: Annotated[
        list[int] | None,
        typer.Option("--seeds", help="One number is how many seeds, several are the seeds; 3 if not given."),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="How often every fit sees every row.")] = 20,
    batch_size: BatchOption = None,
    rows: RowsOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Compare methods under one encoder, the same steps and the same evaluation; labels only score.

    Example: `pinoise compare --data digits --methods fixed scarf pinda-paper --seeds 3 --epochs 20`
    """
    flags: dict[str, Any] = {
        "training.epochs": epochs,
        "training.batch_size": batch_size,
        "training.device": device,
        "data.rows": rows,
    }
    run_comparison(
        sources=data,
        label=label,
        methods=methods,
        seeds=chosen_seeds(seeds),
        changes=[*assignments(flags), *(set_ or [])],
        as_json=json,
    )


def chosen_seeds(values: list[int] | None) -> list[int]:
    """One number says how many seeds, several are the seeds.

    >>> chosen_seeds([3]), chosen_seeds([7, 9])
    ([0, 1, 2], [7, 9])
    """
    values = values or [3]
    if len(values) > 1:
        if min(values) < 0:
            raise UserError(f"--seeds has {min(values)}: a seed is a whole number from 0.")
        return values
    if not 1 <= values[0] <= 1000:
        raise UserError(f"--seeds is {values[0]}: give a number of seeds from 1 to 1000, or several seeds.")
    return list(range(values[0]))


def run_comparison(
    *,
    sources: list[str],
    label: str | None,
    methods: list[str] | None,
    seeds: list[int],
    changes: list[str],
    as_json: bool,
) -> None:
    """Run a comparison and print it; Ctrl-C prints what is done so far."""
    from pinoise.experiments import DEFAULT_METHODS, choose_methods, open_compared, plan
    from pinoise.experiments import compare as run
    from pinoise.training.device import flushed_denormals
    from pinoise.training.parse import override, parse_settings

    names = choose_methods(list(methods or DEFAULT_METHODS))
    settings = override({}, changes)
    plans = plan(names, seeds, settings=settings)
    datasets = open_compared(sources, parse_settings(settings).data, label=label, progress=on_terminal())
    for opened in datasets:
        for sentence in opened.notes:
            note(f"{opened.name}: {sentence}")
    cells = []
    try:
        with flushed_denormals(), reporters(epochs=False) as make:
            for cell in run(datasets, plans, reporter=make):
                cells.append(cell)
    except KeyboardInterrupt:
        say(f"stopped after {len(cells)} of {len(datasets) * len(plans)} fits")
    if cells:
        (_print_as_json if as_json else _print_tables)(cells, settings)
    if len(cells) < len(datasets) * len(plans):
        raise typer.Exit(130)


def _print_as_json(cells: list[Cell], settings: dict[str, Any]) -> None:
    from pinoise.experiments import summarise, verdict
    from pinoise.training.environment import describe_environment

    print_json(
        {
            "rows": [cell.as_dict() for cell in cells],
            "verdicts": {name: verdict(lines) for name, lines in _by_data(summarise(cells)).items()},
            "settings": settings,
            "environment": describe_environment(),
        }
    )


def _print_tables(cells: list[Cell], settings: dict[str, Any]) -> None:
    from pinoise.experiments import RECIPES, SCORES, summarise, verdict

    seeds = len({cell.seed for cell in cells})
    for name, lines in _by_data(summarise(cells)).items():
        flagged = any(line.flags for line in lines)
        table = [
            [
                RECIPES[line.method].title,
                *(f"{line.means[key]:.1f}" + (f" ±{line.stds[key]:.1f}" if seeds > 1 else "") for key in SCORES),
                f"{line.seconds:.1f}",
                *([", ".join(line.flags)] if flagged else []),
            ]
            for line in lines
        ]
        titles = [name, *(SCORE_TITLES[key] for key in SCORES), "fit s", *(["noise"] if flagged else [])]
        print_table(titles, table, words=(0, 6))
        print(f"\n{verdict(lines)}\n")
    over = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    print(f"Accuracy in percent, {over}; few-label: 10 labels per class, 10 draws; fit s: seconds to train.")


def _by_data(lines: list[Line]) -> dict[str, list[Line]]:
    return {name: [line for line in lines if line.data == name] for name in dict.fromkeys(line.data for line in lines)}
