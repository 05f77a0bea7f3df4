"""Options that several verbs share, and how flags become configuration."""

from __future__ import annotations

from typing import Annotated, Any

import typer

DataOption = Annotated[
    str, typer.Option("--data", help="A data set of the catalogue, or a file (.csv .parquet .npy .npz .svm).")
]
LabelOption = Annotated[str | None, typer.Option("--label", help="The label's column; it is never used in training.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as training.precision=bf16-mixed; repeatable."),
]
RowsOption = Annotated[int | None, typer.Option("--rows", help="Use at most this many training rows.")]
EpochsOption = Annotated[int | None, typer.Option("--epochs", help="How often every row is seen.")]
BatchOption = Annotated[int | None, typer.Option("--batch-size", help="Rows in a step.")]
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda or mps.")]


Change = tuple[str, Any]
"""A setting's path and its new value."""


def changes_from(flags: dict[str, Any], assignments: list[str] | None) -> list[Change]:
    """Return the flags that were given, and the assignments of ``--set`` after them, as changes of a configuration.

    >>> changes_from({"training.epochs": 5, "method": None}, ["training.seed=3"])
    [('training.epochs', 5), ('training.seed', 3)]
    """
    from pinoise.training.config import parse_assignment

    given = [(path, value) for path, value in flags.items() if value is not None]
    return [*given, *map(parse_assignment, assignments or ())]
