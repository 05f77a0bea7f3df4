"""``pinoise report``: pictures of a run's noise and a page about the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinoise.cli.console import note, on_terminal, print_json, say
from pinoise.cli.options import ForceOption, JsonOption, TrustOption, seed_option
from pinoise.errors import UserError


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR", help="The folder of a finished run; several compare.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write to, rather than the run's own.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Pictures to show (8 if not given), or vectors to average σ over (256).")
    ] = None,
    seed: Annotated[int, seed_option("Of the draw of ε.")] = 0,
    force: ForceOption = False,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Write report.html about a run, with pictures of its noise; more runs on the same data are set beside it.

    Example: `pinoise report runs/digits`

    The noise of three runs, as in the paper's Figure 4: `pinoise report runs/mu runs/uniform runs/zero --out figure4`
    """
    if samples is not None and samples < 1:
        raise UserError(f"--samples is {samples}: give at least 1.")
    from pinoise.report import check_report_folder, write_report
    from pinoise.training.load import load_run

    check_report_folder(out, runs, force=force)
    written = write_report(
        [load_run(run, trust=trust) for run in runs],
        folder=out,
        samples=samples,
        seed=seed,
        progress=on_terminal(),
        force=force,
    )
    for sentence in written.notes:
        note(sentence)
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
