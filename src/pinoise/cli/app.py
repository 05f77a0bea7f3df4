"""The command's verbs, and what happens to a user's mistake: one sentence and exit code 2."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from pinoise.choices import OWN_MODULES
from pinoise.cli.compare import compare, demo
from pinoise.cli.console import say, warnings_as_notes
from pinoise.cli.datasets import datasets
from pinoise.cli.embed import embed
from pinoise.cli.evaluate import evaluate
from pinoise.cli.options import VariadicCommand
from pinoise.cli.report import report
from pinoise.cli.train import train
from pinoise.errors import UserError

app = typer.Typer(
    name="pinoise",
    help="Learn data augmentation for contrastive learning, on any data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for verb in (demo, train, embed, evaluate):
    app.command()(verb)
app.command(cls=VariadicCommand)(compare)
app.command()(report)
app.command()(datasets)

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


def main() -> None:
    """Run the command."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch's hints on DDP are for its developers
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a σ must not stop a run whose output goes to an old code page
    # A user's module (--encoder mine:Net) is found in the current folder, as by ``python -m pinoise``. The folder comes
    # last on the path, so that a file there cannot stand in for a library.
    OWN_MODULES[:] = [""]
    try:
        with warnings_as_notes():
            code = app(standalone_mode=False, prog_name="pinoise")
        sys.stdout.flush()
    except UserError as error:
        _fail(str(error))
    except UsageError as error:
        _fail(_usage_sentence(error))
    except BrokenPipeError:
        # The reader of our output went away: leave quietly, and keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and error.filename is None:  # what is printed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            _fail(f"the output cannot be written ({error.strerror}): free some space or send it elsewhere.")
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}.")
    if isinstance(code, int) and code:
        sys.exit(code)


def _usage_sentence(error: Any) -> str:
    message = str(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    if not message or context is None:
        return message
    return f"{message}; '{context.command_path} --help' lists what is allowed."


def _fail(sentence: str) -> NoReturn:
    # The sentence is empty if the help was printed instead. Of several processes, one speaks.
    if sentence and int(os.environ.get("LOCAL_RANK", "0")) == 0:
        say(f"pinoise: {sentence}")
    sys.exit(2)
