"""The command's verbs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pinoise.cli.compare import compare, demo
from pinoise.cli.cost import cost
from pinoise.cli.datasets import datasets
from pinoise.cli.embed import embed
from pinoise.cli.evaluate import evaluate
from pinoise.cli.export import export
from pinoise.cli.help import PlainCommand, PlainGroup
from pinoise.cli.options import VariadicCommand
from pinoise.cli.predict import predict
from pinoise.cli.report import report
from pinoise.cli.reproduce import reproduce
from pinoise.cli.train import train

app = typer.Typer(
    name="pinoise",
    help="Learn data augmentation for contrastive learning, on any data.",
    no_args_is_help=True,
    add_completion=True,
    cls=PlainGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
VERBS: tuple[Callable[..., None], ...] = (
    demo,
    train,
    embed,
    predict,
    evaluate,
    export,
    compare,
    reproduce,
    report,
    cost,
    datasets,
)
for verb in VERBS:
    app.command(cls=VariadicCommand if verb is compare else PlainCommand)(verb)

COMPLETION = "_PINOISE_COMPLETE"  # the variable of shells that ask for completions

# What a mistake in the options raises; typer exports only its subclass.
UsageError: Any = typer.BadParameter.__mro__[1]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("pinoise"))
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn data augmentation for contrastive learning, on any data."""


def call(arguments: list[str]) -> int:
    """Run the verb that the arguments name, and return its exit code. Typer's own way would swallow an interrupt."""
    command = typer.main.get_command(app)
    if COMPLETION in os.environ:  # a shell asks what may come next
        command.main(prog_name="pinoise", complete_var=COMPLETION)
    try:
        with command.make_context("pinoise", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    return 0
