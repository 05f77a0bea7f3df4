"""``pinoise compare``: methods side by side on one's own data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pinoise.cli.console import SCORE_TITLES, note, on_terminal, print_json, print_table, reporters, say
from pinoise.cli.options import (
    BatchOption,
    Change,
    DeviceOption,
    JsonOption,
    LabelOption,
    RowsOption,
    SetOption,
    changes_from,
)
from pinoise.errors import UserError

if TYPE_CHECKING:
    from pinoise.data.dataset import Dataset
    from pinoise.experiments import Cell, Line, Suite


def compare(
    data: Annotated[
        list[str] | None, typer.Option("--data", help="Data sets of the catalogue, or files; several in a row.")
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="vectors or images: all labelled sets that are here, fewer rows, small networks."),
    ] = None,
    label: LabelOption = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            help="raw, untrained, fixed, fixed-0.5, fixed-2, scarf, dacl, vime, modals, viewmaker, simcl, clae, "
            "neighbours, pinda-paper, pinda-paper-mean, pinda-paper-clae, pinda-adversarial, pinda-information, pinda; "
            "for images aug, aug-fixed, aug-paper, aug-pinda, aug-compose, aug-neighbours; several in a row. raw and "
            "untrained are always there.",
        ),
    ] = None,
    seeds: Annotated[
        list[int] | None,
        typer.Option("--seeds", help="One number is how many seeds, several are the seeds; 3 if not given."),
    ] = None,
    embedding: Annotated[
        str | None, typer.Option("--embedding", help="joined or learned; joined if not given, learned for images.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", help="How often every fit sees every row; 20 if not given.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="About how many steps every fit takes, instead of --epochs.")
    ] = None,
    batch_size: BatchOption = None,
    rows: RowsOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", help="Where finished fits are kept, so that a comparison can be stopped and go on."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Fit everything again and keep nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare methods under one encoder, the same steps and the same evaluation; labels only score.

    Example: `pinoise compare --data digits --methods fixed scarf pinda --seeds 3 --epochs 20`
    """
    if (data is None) == (suite is None):
        raise UserError("give either --data, with names or files, or --suite, vectors or images.")
    if suite is not None and label is not None:
        raise UserError(f"--label is {label!r} and a suite's sets know their labels: leave it out.")
    if epochs is not None and steps is not None:
        raise UserError(f"--epochs is {epochs} and --steps is {steps}: give one of them.")
    if steps is not None and steps < 1:
        raise UserError(f"--steps is {steps}: it must be at least 1.")
    if fresh and cache is not None:
        raise UserError("--fresh keeps nothing and --cache says where to: give one of them.")
    flags: dict[str, Any] = {
        "training.epochs": epochs if epochs is not None or steps is not None or suite else 20,
        "training.batch_size": batch_size,
        "training.device": device,
        "data.rows": rows,
    }
    run_comparison(
        sources=data,
        suite=suite,
        label=label,
        methods=methods,
        seeds=chosen_seeds(seeds),
        embedding=embedding,
        changes=changes_from(flags, set_),
        steps=steps,
        cache=None if fresh else cache or "default",
        as_json=json,
    )


def chosen_seeds(values: list[int] | None) -> list[int]:
    """One number says how many seeds, several are the seeds.

    >>> chosen_seeds([3]), chosen_seeds([7, 9])
    ([0, 1, 2], [7, 9])
    """
    values = values or [3]
    if len(values) > 1:
        if min(values) < 0:
            raise UserError(f"--seeds has {min(values)}: a seed is a whole number from 0.")
        return values
    if not 1 <= values[0] <= 1000:
        raise UserError(f"--seeds is {values[0]}: give a number of seeds from 1 to 1000, or several seeds.")
    return list(range(values[0]))


def run_comparison(
    *,
    sources: list[str] | None,
    suite: str | None = None,
    label: str | None = None,
    methods: list[str] | None = None,
    seeds: list[int],
    embedding: str | None = None,
    changes: list[Change],
    steps: int | None = None,
    cache: Path | Literal["default"] | None = None,
    as_json: bool,
) -> None:
    """Run a comparison and print it; Ctrl-C prints what is done so far."""
    from pinoise.choices import EMBEDDINGS
    from pinoise.errors import unknown_choice
    from pinoise.experiments import (
        DEFAULT_METHODS,
        SUITES,
        CellCache,
        choose_methods,
        default_cache_folder,
        plan,
        suite_sources,
    )
    from pinoise.experiments import compare as run
    from pinoise.training.config import embedding_of, override
    from pinoise.training.device import flushed_denormals

    if embedding is not None and embedding not in EMBEDDINGS:
        raise unknown_choice("embedding", embedding, EMBEDDINGS)
    present: list[str] = list(sources or ())
    if suite is not None:
        found, absent = suite_sources(suite)
        present = list(found)
        changes = [*SUITES[suite].settings, *changes]
        if steps is None and not any(path == "training.epochs" for path, _ in changes):
            steps = SUITES[suite].steps
        if absent:
            note(f"not here, so left out: {', '.join(absent)}; set PINOISE_DATA to the folder that has them")
    names = choose_methods(list(methods or (DEFAULT_METHODS if suite is None else SUITES[suite].methods)))
    settings = override({}, changes)
    plans = plan(names, seeds, settings=settings)
    kept = None if cache is None else CellCache(default_cache_folder() if cache == "default" else cache)
    if embedding is None:
        usual = {embedding_of(planned) for planned in plans.values()}  # of images, if any method is for them
        embedding = SUITES[suite].embeddings[0] if suite else "learned" if "learned" in usual else "joined"
    datasets = _opened(present, settings, label=label, suite=None if suite is None else SUITES[suite])
    total = len(dict.fromkeys(present)) * len(plans)
    cells: list[Cell] = []
    try:
        with flushed_denormals(), reporters(epochs=False) as make:
            # A suite reports both embeddings, one at a time, so each fit is scored under both.
            others = () if suite is None else SUITES[suite].embeddings
            wanted = tuple(name for name in EMBEDDINGS if name == embedding or name in others)
            for cell in run(datasets, plans, embeddings=wanted, steps=steps, cache=kept, reporter=make):
                if cell.embedding == embedding:
                    cells.append(cell)
    except KeyboardInterrupt:
        again = "" if kept is None else "; the same command goes on from here"
        say(f"stopped after {len(cells)} of {total} fits{again}")
    if cells:
        about = {"embedding": embedding, "suite": suite, "steps": steps, "settings": settings}
        if as_json:
            _print_as_json(cells, about)
        else:
            _print_tables(cells)
    if len(cells) < total:
        raise typer.Exit(130)


def _opened(
    sources: list[str], settings: dict[str, Any], *, label: str | None, suite: Suite | None
) -> Iterable[Dataset]:
    """Return data sets and tell their notes: all at once, so that a mistake costs no fit, or a suite's in turn."""
    from pinoise.experiments import open_compared, sample_rows, shrink_images
    from pinoise.training.config import parse_settings

    def told(opened: Dataset) -> Dataset:
        for sentence in opened.notes:
            note(f"{opened.name}: {sentence}")
        return opened

    read = parse_settings(settings).data
    if suite is None:
        return [told(opened) for opened in open_compared(sources, read, label=label, progress=on_terminal())]
    return (
        told(shrink_images(sample_rows(opened, train=suite.rows, test=suite.rows), most=suite.pixels))
        for source in sources
        for opened in open_compared([source], read, label=None)
    )


def _print_as_json(cells: list[Cell], about: dict[str, Any]) -> None:
    from pinoise.experiments import standing_as_dict, summarise, verdict
    from pinoise.training.device import describe_environment

    print_json(
        {
            "rows": [cell.as_dict() for cell in cells],
            **standing_as_dict(cells),
            "verdicts": {name: verdict(lines) for name, lines in _by_data(summarise(cells)).items()},
            **about,
            "environment": describe_environment(),
        }
    )


def _print_tables(cells: list[Cell]) -> None:
    from pinoise.experiments import RECIPES, SCORES, against_best_rival, summarise, verdict

    seeds = len({cell.seed for cell in cells})
    by_data = _by_data(summarise(cells))
    bracketed = False
    for name, lines in by_data.items():
        flagged = any(line.flags for line in lines)
        table = [
            [
                RECIPES[line.method].title,
                *(f"{line.means[key]:.1f}" + (f" ±{line.stds[key]:.1f}" if seeds > 1 else "") for key in SCORES),
                f"{line.seconds:.1f}",
                *([", ".join(line.flags)] if flagged else []),
            ]
            for line in lines
        ]
        titles = [name, *(SCORE_TITLES[key] for key in SCORES), "fit s", *(["health"] if flagged else [])]
        print_table(titles, table, words=(0, 6))
        print(f"\n{verdict(lines)}")
        if (found := against_best_rival([cell for cell in cells if cell.data == name])) is not None:
            bracketed = True
            rival, gap = found
            print(f"PiNDA − {RECIPES[rival].title}, few-label: {gap.mean:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}].")
        print()
    if len(by_data) > 1:
        _print_standing([line for lines in by_data.values() for line in lines])
    over = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    print(f"Accuracy in percent, {over}; few-label: 10 labels per class, 10 draws; fit s: seconds to train.")
    if bracketed:
        what = "seeds and draws of labels" if seeds > 1 else "draws of labels"
        print(f"In brackets: 95 % bootstrap interval over {what}, for these test rows.")


def _print_standing(lines: list[Line]) -> None:
    """Print how methods stand over all data sets."""
    from pinoise.experiments import RECIPES, comparisons, rank_methods

    scores = ("few", "knn")
    ranks = {score: rank_methods(lines, score) for score in scores}
    found = {score: {item.rival: item for item in comparisons(lines, score)} for score in scores}
    subject = next((item.method for item in found["few"].values()), None)
    if subject is None:
        return
    table = []
    for method in dict.fromkeys(line.method for line in lines):
        row = [RECIPES[method].title]
        for score in scores:
            item = found[score].get(method)
            row.append(f"{ranks[score][method]:.2f}" if method in ranks[score] else "")
            row.append("" if item is None else f"{item.wins}–{len(item.losses)}")
            row.append("" if item is None else f"{item.p:.3f}")
        table.append(row)
    sets = len({line.data for line in lines})
    titles = [f"over {sets} sets"]
    for score in scores:
        titles += [f"{SCORE_TITLES[score]} rank", "won–lost", "p"]
    print_table(titles, table)
    lost = {item.rival: item.losses for item in found["few"].values()}
    print(f"\nwon–lost, p (Wilcoxon): {RECIPES[subject].title} against the method of the row.")
    if lost.get("raw"):
        print(f"With few labels it is below raw features on: {', '.join(lost['raw'])}.")
    print()


def _by_data(lines: list[Line]) -> dict[str, list[Line]]:
    return {name: [line for line in lines if line.data == name] for name in dict.fromkeys(line.data for line in lines)}
