"""``pinoise cost``: what a configuration costs before anyone trains it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    changes_from,
)
from pinoise.errors import UserError

if TYPE_CHECKING:
    from pinoise.paper.cost import Cost, Share

TIMED_STEPS = 3


def cost(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG", help="Settings from a YAML file, under the flags.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="A data set of the catalogue, which need not be here, or a file.")
    ] = None,
    label: LabelOption = None,
    rows: RowsOption = None,
    batch_size: BatchOption = None,
    device: DeviceOption = None,
    steps: Annotated[
        int, typer.Option("--steps", help="How many steps are timed; 0 times none and computes nothing.")
    ] = TIMED_STEPS,
    tflops: Annotated[
        float | None,
        typer.Option("--tflops", help="Calculate the times of a machine with this many TFLOP/s instead of timing."),
    ] = None,
    set_: SetOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Print what a configuration costs: FLOPs, memory and time, of its base and of what π-noise adds.

    Example: `pinoise cost --data stl10 --tflops 20`
    """
    if config is None and data is None:
        raise UserError("there is nothing to count: name a configuration file, or data with --data.")
    if not 0 <= steps <= MOST_TIMES:
        raise UserError(f"--steps is {steps}: it must be from 0 to {MOST_TIMES}.")
    if tflops is not None and not 0 < tflops < float("inf"):
        raise UserError(f"--tflops is {tflops}: it must be a positive number.")
    from pinoise.paper.cost import cost_of, size_of_data
    from pinoise.training.config import follow_kind, read_settings
    from pinoise.training.device import check_device

    flags = {
        "data.source": data,
        "data.label": label,
        "data.rows": rows,
        "training.batch_size": batch_size,
        "training.device": device,
    }
    settings = read_settings(config, changes_from(flags, set_), trust=trust)
    check_device(settings.training.device)
    size = size_of_data(settings.data, progress=on_terminal())
    settings = follow_kind(settings, images=size.images).settings
    found = cost_of(settings, size.shape, size.rows, timed_steps=0 if tflops else steps, note=note)
    if settings.is_automatic:
        note("views.noise 'auto' tries several kinds of noise before training, which takes as long again")
    if tflops is not None:
        found = found.on_machine(1e12 * tflops)
    if json:
        print_json({"data": settings.data.source, "tflops": tflops, **found.as_dict()})
        return
    _print(settings.data.source, found, tflops)


def _print(source: str, found: Cost, tflops: float | None) -> None:
    print(
        f"{source}: {found.rows:,} rows of {' × '.join(map(str, found.shape))}, batches of {found.batch_size}, "
        f"{found.steps:,} {'step' if found.steps == 1 else 'steps'} an epoch, {found.epochs:,} "
        f"{'epoch' if found.epochs == 1 else 'epochs'}"
    )
    shares = (found.base, found.added, found.whole)
    columns = [_cells(found, share) for share in shares]
    print_table(["", "base", "π-noise adds", "together"], [list(line) for line in zip(_TITLES, *columns, strict=True)])
    print("FLOPs are multiply-accumulates and, in forward passes, 4 operations for every normalised number.")
    if found.memory_measured:
        print("Memory was measured on the GPU.")
    else:
        print("Memory is calculated: weights, gradients and moments, and what a step keeps for its backward pass;")
        print("what operations use for a moment, and the device itself, come on top.")
    if tflops is not None:
        print(f"Times are calculated, for a machine that does {tflops:g} TFLOP/s.")
    elif found.whole.seconds is not None:
        print("Times are those of a few steps on this machine; reading data is not in them.")


_TITLES = (
    "trained weights",
    "FLOPs, one sample forward",
    "FLOPs, one step forward",
    "FLOPs, one step",
    "peak memory",
    "time of a step",
    "time of an epoch",
    "time of all epochs",
)


def _cells(found: Cost, share: Share) -> list[str]:
    epoch = found.seconds_per_epoch(share)
    return [
        f"{share.parameters:,}",
        *(scientific(count) for count in (share.sample.total, share.forward.total, share.step)),
        gigabytes(share.memory),
        *(duration(value) for value in (share.seconds, epoch, None if epoch is None else found.epochs * epoch)),
    ]


def scientific(count: float) -> str:
    """Return a number as the paper's cost tables write it.

    >>> scientific(2.567e12), scientific(0)
    ('2.57e12', '0')
    """
    mantissa, _, power = f"{count:.2e}".partition("e")
    return f"{mantissa}e{int(power)}" if count else "0"


def gigabytes(size: float) -> str:
    """Return a number of bytes in a unit that can be read.

    >>> gigabytes(84e6), gigabytes(48.2e9)
    ('84 MB', '48.2 GB')
    """
    return f"{size / 1e6:.0f} MB" if abs(size) < 1e9 else f"{size / 1e9:.1f} GB"


def duration(seconds: float | None) -> str:
    """Return a time in a unit that can be read.

    >>> duration(0.0032), duration(21), duration(6700), duration(9000), duration(720_000), duration(None)
    ('0.0032 s', '21 s', '112 min', '2.5 h', '200 h', '–')
    """
    if seconds is None:
        return "–"
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    size, unit = next(((size, unit) for size, unit in ((3600, "h"), (60, "min")) if seconds >= 2 * size), (1, "s"))
    figure = seconds / size
    return f"{sign}{figure:.2g} {unit}" if figure < 99.5 else f"{sign}{figure:.0f} {unit}"
