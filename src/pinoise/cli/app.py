"""The command's verbs."""

from __future__ import annotations

from collections.abc import Callable

import typer

from pinoise.cli.compare import compare, demo
from pinoise.cli.cost import cost
from pinoise.cli.datasets import datasets
from pinoise.cli.embed import embed
from pinoise.cli.evaluate import evaluate
from pinoise.cli.export import export
from pinoise.cli.options import PlainCommand, root
from pinoise.cli.predict import predict
from pinoise.cli.report import report
from pinoise.cli.reproduce import reproduce
from pinoise.cli.train import train

app = typer.Typer(
    name="pinoise",
    help="Learn data augmentation for contrastive learning, on any data.",
    no_args_is_help=True,
    add_completion=True,
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
    app.command(cls=PlainCommand)(verb)
app.callback()(root)
