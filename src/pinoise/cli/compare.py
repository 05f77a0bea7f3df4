"""``pinoise compare``: methods side by side on one's own data."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pinoise.cli.console import SCORE_TITLES, print_json, print_table, reporters, say
from pinoise.cli.options import (
    BatchOption,
    DeviceOption,
    EpochsOption,
    JsonOption,
    LabelOption,
    RowsOption,
    SetOption,
    assignments,
)
from pinoise.errors import UserError


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
        list[int] | None, typer.Option("--seeds", help="How many seeds, or the seeds themselves; 3 if not given.")
    ] = None,
    epochs: EpochsOption = None,
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
    }
    run_comparison(
        sources=data,
        label=label,
        methods=methods,
        seeds=chosen_seeds(seeds),
        rows=rows,
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
    rows: int | None,
    changes: list[str],
    as_json: bool,
) -> None:
    """Run a comparison and print it."""
    from pinoise.data.source import open_source
    from pinoise.data.split import split
    from pinoise.experiments import DEFAULT_METHODS, SCORES, choose_methods, summarise, verdict
    from pinoise.experiments import compare as run
    from pinoise.experiments.recipes import RECIPES
    from pinoise.training.environment import describe_environment
    from pinoise.training.parse import override

    names = choose_methods(list(methods or DEFAULT_METHODS))
    datasets = []
    for source in sources:
        loaded = split(open_source(source, label=label)[0])
        datasets.append(loaded if rows is None else loaded.head(rows))
        for note in datasets[-1].notes:
            say(f"note: {loaded.name}: {note}")
    settings = override({}, changes)
    with reporters() as make:
        cells = list(run(datasets, names, seeds, settings=settings, reporter=make))
    lines = summarise(cells)
    verdicts = {data.name: verdict([line for line in lines if line.data == data.name]) for data in datasets}
    if as_json:
        print_json(
            {
                "rows": [cell.as_dict() for cell in cells],
                "verdicts": verdicts,
                "settings": settings,
                "environment": describe_environment(),
            }
        )
        return
    for data in datasets:
        table = [
            [
                RECIPES[line.method].title,
                *(f"{line.means[key]:.1f} ± {line.stds[key]:.1f}" for key in SCORES),
                f"{line.seconds:.1f}",
                ", ".join(line.flags),
            ]
            for line in lines
            if line.data == data.name
        ]
        titles = [f"{data.name}: accuracy (%)", *(SCORE_TITLES[key] for key in SCORES), "fit (s)", "noise"]
        print_table(titles, table)
        print(verdicts[data.name])
    over = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    print(f"Mean ± standard deviation over {over}; few-label: 10 labels per class, 10 draws.")
