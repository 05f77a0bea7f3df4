"""The command's verbs, and what happens to a user's mistake: one sentence and exit code 2."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from pinoise.cli.compare import compare
from pinoise.cli.datasets import datasets
from pinoise.cli.demo import demo
from pinoise.cli.embed import embed
from pinoise.cli.evaluate import evaluate
from pinoise.cli.train import train
from pinoise.cli.variadic import VariadicCommand
from pinoise.errors import UserError

app = typer.Typer(
    name="pinoise",
    help="Learn data augmentation for contrastive learning, on any data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for verb in (demo, train, embed, evaluate, datasets):
    app.command()(verb)
app.command(cls=VariadicCommand)(compare)


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


def main() -> None:
    """Run the command."""
    try:
        app()
    except UserError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output went away: leave quietly, and keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("pinoise: stopped", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}.")


def _fail(sentence: str) -> None:
    print(f"pinoise: {sentence}", file=sys.stderr)
    sys.exit(2)
