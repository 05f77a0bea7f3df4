"""``pinoise cost``: what a configuration costs before anyone trains it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.choices import MOST_TIMES
from pinoise.cli.console import note, on_terminal, print_json, print_table
from pinoise.cli.options import (
    BatchOption,
    DeviceOption,
    JsonOption,
    LabelOption,
    RowsOption,
    SetOption,
    TrustOption,
    flag_changes,
)
from pinoise.errors import UserError

_STEPS = typer.Option(min=0, max=MOST_TIMES, help="How many steps are timed; 0 computes nothing.")
_TFLOPS = "Calculate the times of a machine with this many TFLOP/s instead of timing."
_DATA = "A data set of the catalogue, which need not be here, or a file."


def cost(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", help="Settings from a YAML file, under the flags.")
    ] = None,
    data: Annotated[str | None, typer.Option("--data", metavar="SOURCE", help=_DATA)] = None,
    label: LabelOption = None,
    rows: RowsOption = None,
    batch_size: BatchOption = None,
    device: DeviceOption = None,
    steps: Annotated[int, _STEPS] = 3,
    tflops: Annotated[float | None, typer.Option("--tflops", help=_TFLOPS)] = None,
    set_: SetOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Print what a configuration costs: FLOPs, memory and time, of its base and of what π-noise adds.

    Example: `pinoise cost --data stl10 --tflops 20`
    """
    if config is None and data is None:
        raise UserError("there is nothing to count: name a configuration file, or data with --data.")
    if tflops is not None and not 0 < tflops < float("inf"):
        raise UserError(f"--tflops is {tflops}: it must be a positive number.")
    from pinoise.paper.cost import cost_of_training
    from pinoise.paper.cost_table import cost_table
    from pinoise.training.config import read_settings

    settings = read_settings(config, flag_changes(context, set_), trust=trust)
    found = cost_of_training(settings, timed_steps=0 if tflops else steps, progress=on_terminal(), note=note)
    found = found if tflops is None else found.on_machine(1e12 * tflops)
    source = settings.data.source
    if json:
        print_json({"data": source, "tflops": tflops, **found.as_dict()})
        return
    told = cost_table(source, found, tflops=tflops)
    print(told.subject)
    print_table(told.titles, told.rows)
    print(*told.remarks, sep="\n")
