"""Options that several verbs share, and how arguments become a call and flags a configuration."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from pinoise.choices import (
    BATCH_SIZE,
    ENCODER,
    ENGINES,
    EPOCHS,
    LARGEST_SEED,
    LEARNING_RATE,
    MOST_PROCESSES,
    Kind,
)
from pinoise.errors import either, unknown_choice


class PlainCommand(typer.core.TyperCommand):
    """A command whose help shows no type beside a flag or a named argument."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, of which typer would show the type."""
        found = super().get_params(ctx)
        for parameter in found:
            if parameter.param_type_name == "argument":
                parameter.display_type = lambda ctx: ""  # type: ignore[attr-defined]
            elif parameter.is_flag:  # type: ignore[attr-defined]
                parameter.metavar = ""
        return found


DATA = "A data set of the catalogue, a file (.csv .parquet .npy .npz .svm), or a folder of images."
DataOption = Annotated[str, typer.Option("--data", metavar="SOURCE", help=DATA)]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="The label's column; it is never used in training."),
]
RegressionOption = Annotated[
    bool | None,
    typer.Option(
        "--regression/--classes",
        help="Whether the label is a number to predict, scored by R², or a class; its values decide if not given.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="The column to predict, with empty cells where it is not known; fits a classifier.",
    ),
]


def repeatable(flag: str, what: str, *, metavar: str = "COLUMN") -> Any:
    """Return an option that may be given several times."""
    return typer.Option(flag, metavar=metavar, help=f"{what}; repeatable.")


TextOption = Annotated[list[str] | None, repeatable("--text", "A column of free text, whose words become features")]
DropOption = Annotated[list[str] | None, repeatable("--drop", "A column to leave out")]
KeepOption = Annotated[list[str] | None, repeatable("--keep", "A column to keep although its values name the rows")]
MissingOption = Annotated[
    list[str] | None, repeatable("--na", "A value of cells that means missing, such as '?'", metavar="CELL")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as training.precision=bf16-mixed; repeatable."),
]
RowsOption = Annotated[int | None, typer.Option("--rows", help="Use at most this many training rows.")]
EpochsOption = Annotated[
    int | None, typer.Option("--epochs", help="How often every row is seen.", show_default=str(EPOCHS))
]
BatchOption = Annotated[int | None, typer.Option("--batch-size", help="Rows in a step.", show_default=str(BATCH_SIZE))]
LearningRateOption = Annotated[
    float | None, typer.Option("--learning-rate", help="Step size of Adam.", show_default=f"{LEARNING_RATE:g}")
]
TemperatureOption = Annotated[
    float | None,
    typer.Option("--temperature", help="τ of the contrastive loss.", show_default="the method's own"),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="Where to compute: auto, cpu, cuda or mps.", show_default="auto")
]


def part_option(flag: str, kind: Kind, what: str = "", *, more: str = "", default: str | None = None) -> Any:
    """Return the option of a part, whose help lists the names that there are."""
    names = f"{what}{either(kind.names)}, or package.module:name of your own{more}."
    return typer.Option(flag, help=names, show_default=default or kind.default or False)


EncoderOption = Annotated[
    str | None,
    part_option("--encoder", ENCODER, "The network f: ", default="auto: resnet18 for images, mlp for vectors"),
]


def seed_option(what: str) -> Any:
    """Return the option ``--seed`` of random numbers for something."""
    return typer.Option(min=0, max=LARGEST_SEED, help=f"Seed of {what}.")


DevicesOption = Annotated[
    int | None, typer.Option(min=1, max=MOST_PROCESSES, help="Processes that share the rows.", show_default="1")
]


def _check_engine(engine: str | None) -> str | None:
    if engine is not None and engine not in ENGINES:
        raise unknown_choice("engine", engine, ENGINES)
    return engine


EngineOption = Annotated[
    str | None,
    typer.Option("--engine", callback=_check_engine, help=f"Work on a cluster: {either(ENGINES)}.", show_default="off"),
]

CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="Where finished fits are kept, so that the command can be stopped and go on.",
        show_default="the user's cache folder",
    ),
]

TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Import the parts of a user's own that the run or the configuration names, which runs their code.",
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace what is there; never the input, nor a file of a run.")
]

Change = tuple[str, Any]  # a setting's path and its new value


# The setting that each flag stands for.
FLAGS = {
    "data": "data.source",
    **{name: f"data.{name}" for name in ("label", "regression", "text", "drop", "keep", "na", "target", "rows")},
    **{name: name for name in ("method", "encoder", "objective")},
    "temperature": "method.temperature",
    **{name: f"noise.{name}" for name in ("generator", "distribution", "mean")},
    "pairing": "views.pairing",
    "augment": "views.augmentations",
    **{name: f"training.{name}" for name in ("epochs", "batch_size", "learning_rate", "patience")},
    **{name: f"training.{name}" for name in ("seed", "device", "devices", "nodes")},
}


def flag_changes(context: typer.Context, assignments: list[str] | None, *, without: Sequence[str] = ()) -> list[Change]:
    """Return the flags that were given, but for some, and the assignments of ``--set``, as changes of settings."""
    from pinoise.training.config import parse_assignment

    flags = {FLAGS[name]: value for name, value in context.params.items() if name in FLAGS and name not in without}
    given = [(path, value) for path, value in flags.items() if value not in (None, [], ())]
    return [*given, *map(parse_assignment, assignments or ())]


COMPLETION = "_PINOISE_COMPLETE"  # the variable of shells that ask for completions

# What a mistake in the options raises; typer exports only its subclass.
UsageError: Any = typer.BadParameter.__mro__[1]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("pinoise"))
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn data augmentation for contrastive learning, on any data."""


def call(app: typer.Typer, arguments: list[str]) -> int:
    """Run the verb that the arguments name, and return its exit code. Typer's own way would swallow an interrupt."""
    asked = [verb for verb in app.registered_commands if arguments[:1] == [getattr(verb.callback, "__name__", None)]]
    only = copy.copy(app)  # with one verb: the options of the others need not be made
    only.registered_commands = asked or app.registered_commands
    command = typer.main.get_command(only)
    if COMPLETION in os.environ:  # a shell asks what may come next
        command.main(prog_name="pinoise", complete_var=COMPLETION)
    try:
        with command.make_context("pinoise", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    return 0
