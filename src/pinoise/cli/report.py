"""``pinoise report``: pictures of a run's noise and a page about the run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinoise.choices import MOST_TIMES
from pinoise.cli.console import note, on_terminal, print_json, say
from pinoise.cli.options import ForceOption, JsonOption, TrustOption, seed_option

if TYPE_CHECKING:
    from pinoise.experiments.evaluated import Evaluation
    from pinoise.model import Model

_MOST_ROWS = 5000  # of each part, so that a page of large data need not wait for hours; evaluate takes all
_SAMPLES = "Pictures to show (8 if not given), or vectors to average σ over (256)."


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR", help="The folder of a finished run; several compare.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write to, rather than the run's own.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, max=MOST_TIMES, help=_SAMPLES)] = None,
    seed: Annotated[int, seed_option("the draw of ε")] = 0,
    force: ForceOption = False,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Write report.html about a run: is it better than raw features, and how does it look?

    A run that has not been evaluated is evaluated first, on at most 5,000 rows of each part. More runs on the same data
    are set beside the first.

    Example: `pinoise report runs/digits`

    The noise of three runs, as in the paper's Figure 4: `pinoise report runs/mu runs/uniform runs/zero --out figure4`
    """
    from pinoise.model import load_run
    from pinoise.report import write_report

    written = write_report(
        [load_run(run, trust=trust) for run in runs],
        folder=out,
        evaluation=partial(_evaluated, store=out is None),
        samples=samples,
        seed=seed,
        progress=on_terminal(),
        force=force,
    )
    note(*written.notes)
    for flag in written.flags:
        say(f"warning: {flag.name}: {flag.meaning}.")
    if json:
        print_json(
            {
                "report": str(written.page),
                "pictures": {name: str(path) for name, path in written.pictures.items()},
                "flags": [flag.name for flag in written.flags],
            }
        )
        return
    for path in (written.page, *written.pictures.values()):
        print(path)


def _evaluated(run: Model, *, store: bool) -> Evaluation:
    """Return what is known about a run as it is now: what its folder says, or what is found out on some of its rows."""
    from pinoise.experiments.evaluated import evaluate_run, read_evaluation, store_evaluation

    if (known := read_evaluation(run)) is not None:
        return known
    note(f"{run.path.name}: this state of the run has not been evaluated, so it is now")
    found = evaluate_run(run, rows=_MOST_ROWS, progress=on_terminal())
    if store:
        store_evaluation(run, found, note=note)
    return found
