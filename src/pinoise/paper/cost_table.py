"""The cost of a configuration in a table and sentences."""

from __future__ import annotations

from typing import NamedTuple

from pinoise.errors import counted
from pinoise.paper.cost import Cost, Share

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


class CostTable(NamedTuple):
    """What is counted, its table with a column for the base, for what π-noise adds and for both, and how to read it."""

    subject: str
    titles: list[str]
    rows: list[list[str]]
    remarks: list[str]


def cost_table(source: str, found: Cost, *, tflops: float | None = None) -> CostTable:
    """Return the cost of training on a source; ``tflops`` is the rate for which times were calculated, if they were."""
    subject = (
        f"{source}: {found.rows:,} rows of {' × '.join(map(str, found.shape))}, batches of {found.batch_size}, "
        f"{counted(found.steps, 'step')} an epoch, {counted(found.epochs, 'epoch')}"
    )
    columns = [_cells(found, share) for share in (found.base, found.added, found.whole)]
    remarks = ["FLOPs are multiply-accumulates and, in forward passes, 4 operations for every normalised number."]
    if found.memory_measured:
        remarks.append("Memory was measured on the GPU.")
    else:
        remarks.append("Memory is calculated: weights, gradients and moments, and what a step keeps to go backward.")
        remarks.append("What operations use for a moment, and the device itself, come on top.")
    if tflops is not None:
        remarks.append(f"Times are calculated, for a machine that does {tflops:g} TFLOP/s.")
    elif found.whole.seconds is not None:
        remarks.append("Times are those of a few steps on this machine; reading data is not in them.")
    rows = [list(line) for line in zip(_TITLES, *columns, strict=True)]
    return CostTable(subject, ["", "base", "π-noise adds", "together"], rows, remarks)


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
