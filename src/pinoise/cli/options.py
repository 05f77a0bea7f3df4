"""Options that several verbs share, how help shows them, and how arguments become a call and flags a configuration.

Help has plain words for values, nothing for flags, and defaults where there are any.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

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
    listed,
)
from pinoise.errors import UserError, unknown_choice

_WORDS: dict[type, str] = {Path: "PATH", int: "N", float: "NUMBER", str: "NAME"}


def in_plain_words(parameters: Sequence[Any]) -> list[Any]:
    """Return parameters that show a word for their value. Typer would show its type, as in ``<list[str]>``."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type = lambda ctx: ""  # its name, which stands before, says enough
            parameter.get_usage_pieces = partial(_usage, parameter)
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _word(parameter)
    return list(parameters)


def _usage(argument: Any, ctx: Any) -> list[str]:
    name = argument.metavar or argument.name.upper()
    name = f"{name}..." if argument.nargs != 1 else name
    return [name if argument.required else f"[{name}]"]


def _word(option: Any) -> str | None:
    """Return a word for the values of an option; None leaves it to typer, in versions that have words of their own."""
    annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    inner = next(iter(get_args(annotation)), annotation)
    return next((word for kind, word in _WORDS.items() if isinstance(inner, type) and issubclass(inner, kind)), None)


class PlainCommand(typer.core.TyperCommand):
    """A command whose help has plain words."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with words for their values."""
        return in_plain_words(super().get_params(ctx))


class PlainGroup(typer.core.TyperGroup):
    """A group of commands whose help has plain words."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with words for their values."""
        return in_plain_words(super().get_params(ctx))


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
TextOption = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="COLUMN", help="A column of free text, whose words become features; repeatable."),
]
DropOption = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMN", help="A column to leave out; repeatable.")
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="COLUMN", help="A column to keep although its values name the rows; repeatable."),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option("--na", metavar="CELL", help="A value of cells that means missing, such as '?'; repeatable."),
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
    float | None, typer.Option("--learning-rate", help="Of Adam.", show_default=f"{LEARNING_RATE:g}")
]
TemperatureOption = Annotated[
    float | None,
    typer.Option("--temperature", help="τ of the contrastive loss.", show_default="the method's own"),
]
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda or mps.", show_default="auto")]


def part_option(flag: str, kind: Kind, what: str = "", *, more: str = "", default: str | None = None) -> Any:
    """Return the option of a part, whose help lists the names that there are."""
    names = f"{what}{listed(kind.names)}, or package.module:name of your own{more}."
    return typer.Option(flag, help=names, show_default=default or kind.default or False)


EncoderOption = Annotated[
    str | None, part_option("--encoder", ENCODER, default="auto: resnet18 for images, mlp for vectors")
]


def _check_seed(seed: int) -> int:
    if not 0 <= seed <= LARGEST_SEED:
        raise UserError(f"--seed is {seed}: give a whole number from 0 to {LARGEST_SEED}.")
    return seed


def seed_option(what: str) -> Any:
    """Return the option ``--seed`` of random numbers for something."""
    return typer.Option("--seed", callback=_check_seed, help=what)


def _check_devices(devices: int | None) -> int | None:
    if devices is not None and not 1 <= devices <= MOST_PROCESSES:
        raise UserError(f"--devices is {devices}: give a whole number from 1 to {MOST_PROCESSES}.")
    return devices


DevicesOption = Annotated[
    int | None,
    typer.Option("--devices", callback=_check_devices, help="Processes that share the rows.", show_default="1"),
]


def _check_engine(engine: str | None) -> str | None:
    if engine is not None and engine not in ENGINES:
        raise unknown_choice("engine", engine, ENGINES)
    return engine


EngineOption = Annotated[
    str | None,
    typer.Option("--engine", callback=_check_engine, help=f"Work on a cluster: {listed(ENGINES)}.", show_default="off"),
]

TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust", help="Import the parts of its own that the run or the configuration names: this runs their code."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace what is there; never the input, nor a file of a run.")
]

Change = tuple[str, Any]  # a setting's path and its new value


def changes_from(flags: dict[str, Any], assignments: list[str] | None) -> list[Change]:
    """Return the flags that were given, and the assignments of ``--set`` after them, as changes of a configuration.

    >>> changes_from({"training.epochs": 5, "method": None}, ["training.seed=3"])
    [('training.epochs', 5), ('training.seed', 3)]
    """
    from pinoise.training.config import parse_assignment

    given = [(path, value) for path, value in flags.items() if value not in (None, [], ())]
    return [*given, *map(parse_assignment, assignments or ())]


VARIADIC = ("--data", "--methods", "--seeds")
_LISTS = ("--methods", "--seeds")  # their values never hold a comma, file names may


def spread(arguments: list[str]) -> list[str]:
    """Repeat a variadic option before each of its values, and split lists at commas.

    >>> spread(["--methods", "raw", "fixed,scarf", "--json"])
    ['--methods', 'raw', '--methods', 'fixed', '--methods', 'scarf', '--json']
    """
    result: list[str] = []
    option: str | None = None
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("-"):
            option = name if name in VARIADIC else None
            if option is not None and not equals:
                continue
            argument = value if option is not None else argument
        if option is None:
            result.append(argument)
        else:
            for part in argument.split(",") if option in _LISTS else [argument]:
                result += [option, part]
    return result


class VariadicCommand(PlainCommand):
    """A command whose variadic options may be followed by several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spread the arguments, then parse them as usual."""
        return super().parse_args(ctx, spread(args))


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
