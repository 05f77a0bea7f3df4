"""Options that several verbs share, and how flags become configuration."""

from __future__ import annotations

import json
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


def assignments(flags: dict[str, Any]) -> list[str]:
    """Return the flags that were given as ``key=value`` assignments.

    >>> assignments({"training.epochs": 5, "method": None})
    ['training.epochs=5']
    """
    return [f"{key}={value}" for key, value in flags.items() if value is not None]


def quoted(text: str) -> str:
    """Return text as a YAML string, which a column called 2020 or a file called ``a: b.csv`` must not leave.

    >>> quoted("-1")
    '"-1"'
    """
    return json.dumps(text, ensure_ascii=False)
