"""``pinoise compare`` and ``pinoise demo``: methods side by side, on your own data and on handwritten digits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pinoise.choices import EMBEDDINGS, LARGEST_SEED, MOST_TIMES, listed
from pinoise.cli.console import (
    R2_TITLES,
    SCORE_MEANINGS,
    SCORE_TITLES,
    STOPPED,
    note,
    on_terminal,
    print_json,
    print_table,
    reporters,
    say,
)
from pinoise.cli.options import (
    DATA,
    BatchOption,
    Change,
    DeviceOption,
    EncoderOption,
    JsonOption,
    LabelOption,
    LearningRateOption,
    RegressionOption,
    RowsOption,
    SetOption,
    TemperatureOption,
    TextOption,
    changes_from,
)
from pinoise.errors import UserError
from pinoise.experiments.recipes import (
    ALWAYS,
    DEFAULT_METHODS,
    EPOCHS,
    IMAGE_METHODS,
    MOST_SEEDS,
    RECIPES,
    SEEDS,
    SUITES,
)

if TYPE_CHECKING:
    from pinoise.experiments.compare import Comparison
    from pinoise.experiments.results import Cell, Line

SuiteOption = Annotated[
    str | None,
    typer.Option(
        "--suite", help=f"{listed(tuple(SUITES))}: all labelled sets that are here, fewer rows, small networks."
    ),
]
MethodsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        help=f"{listed(tuple(RECIPES))}; several in a row. {listed(ALWAYS, last='and')} are always there.",
        show_default=f"{listed(DEFAULT_METHODS, last='and')}; for images {listed(IMAGE_METHODS, last='and')}",
    ),
]
ScoreOnOption = Annotated[
    str | None,
    typer.Option(
        "--score-on", metavar="SOURCE", help="A labelled set or file to score on, if it is not the data trained on."
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        help="Where finished fits are kept, so that a comparison can be stopped and go on.",
        show_default="the user's cache folder",
    ),
]


SourcesOption = Annotated[list[str] | None, typer.Option("--data", metavar="SOURCE", help=f"{DATA} Several in a row.")]
SeedsOption = Annotated[
    list[int] | None,
    typer.Option("--seeds", help="One number is how many seeds, several are the seeds.", show_default=str(SEEDS)),
]
EmbeddingOption = Annotated[
    str | None, typer.Option("--embedding", help=f"{listed(EMBEDDINGS)}.", show_default="joined, learned for images")
]
FitEpochsOption = Annotated[
    int | None, typer.Option("--epochs", help="How often every fit sees every row.", show_default=str(EPOCHS))
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="About how many steps every fit takes, instead of --epochs.")
]


def compare(
    data: SourcesOption = None,
    suite: SuiteOption = None,
    label: LabelOption = None,
    regression: RegressionOption = None,
    text: TextOption = None,
    score_on: ScoreOnOption = None,
    methods: MethodsOption = None,
    seeds: SeedsOption = None,
    encoder: EncoderOption = None,
    embedding: EmbeddingOption = None,
    epochs: FitEpochsOption = None,
    steps: StepsOption = None,
    batch_size: BatchOption = None,
    learning_rate: LearningRateOption = None,
    temperature: TemperatureOption = None,
    rows: RowsOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    cache: CacheOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Fit everything again and keep nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare methods under one encoder, the same steps and the same evaluation; labels only score.

    Example: `pinoise compare --data digits --methods fixed scarf pinda --seeds 3 --epochs 20`
    """
    _check_asked(data, suite, label, score_on, epochs, steps)
    if fresh and cache is not None:
        raise UserError("--fresh keeps nothing and --cache says where to: give one of them.")
    flags: dict[str, Any] = {
        "encoder": encoder,
        "method.temperature": temperature,
        "training.epochs": epochs,
        "training.batch_size": batch_size,
        "training.learning_rate": learning_rate,
        "training.device": device,
        "data.rows": rows,
        "data.regression": regression,
        "data.text": text,
    }
    run_comparison(
        *(data or ()),
        changes=changes_from(flags, set_),
        cache=None if fresh else cache or "default",
        as_json=json,
        suite=suite,
        label=label,
        score_on=score_on,
        methods=methods,
        seeds=chosen_seeds(seeds),
        embedding=embedding,
        steps=steps,
    )


def _check_asked(
    data: list[str] | None,
    suite: str | None,
    label: str | None,
    score_on: str | None,
    epochs: int | None,
    steps: int | None,
) -> None:
    """Refuse options that contradict each other."""
    if (data is None) == (suite is None):
        raise UserError("give either --data, with names or files, or --suite, vectors or images.")
    if suite is not None and score_on is not None:
        raise UserError(f"--score-on is {score_on!r} and a suite scores every set on itself: leave it out.")
    if suite is not None and label is not None:
        raise UserError(f"--label is {label!r} and a suite's sets know their labels: leave it out.")
    if epochs is not None and steps is not None:
        raise UserError(f"--epochs is {epochs} and --steps is {steps}: give one of them.")
    if steps is not None and steps < 1:
        raise UserError(f"--steps is {steps}: it must be at least 1.")
    if steps is not None and steps > MOST_TIMES:
        raise UserError(f"--steps is {steps}: it must be at most {MOST_TIMES}.")


def chosen_seeds(values: list[int] | None) -> list[int]:
    """One number says how many seeds, several are the seeds.

    >>> chosen_seeds([3]), chosen_seeds([7, 9])
    ([0, 1, 2], [7, 9])
    """
    values = values or [SEEDS]
    if len(values) > 1:
        wrong = next((seed for seed in values if not 0 <= seed <= LARGEST_SEED), None)
        if wrong is not None:
            raise UserError(f"--seeds has {wrong}: a seed is a whole number from 0 to {LARGEST_SEED}.")
        return values
    if not 1 <= values[0] <= MOST_SEEDS:
        raise UserError(f"--seeds is {values[0]}: give a number of seeds from 1 to {MOST_SEEDS}, or several seeds.")
    return list(range(values[0]))


def run_comparison(
    *sources: str,
    changes: list[Change],
    cache: Path | Literal["default"] | None = None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Run ``pinoise.compare`` and print what it found; Ctrl-C prints what is done so far.

    Args:
        sources: names and files.
        changes: what all methods share.
        cache: a folder for finished fits.
        as_json: whether to print JSON.
        asked: further arguments of ``pinoise.compare``.
    """
    from pinoise.experiments.cache import default_cache_folder
    from pinoise.experiments.compare import compare as run
    from pinoise.training.config import override

    with reporters(epochs=False) as make:
        found = run(
            *sources,
            settings=override({}, changes),
            cache=default_cache_folder() if cache == "default" else cache,
            progress=on_terminal(),
            reporter=make,
            note=note,
            keep_partial=True,
            **asked,
        )
    if len(found.cells) < found.total:
        again = "" if cache is None else "; the same command goes on from here"
        say(f"stopped after {len(found.cells)} of {found.total} fits{again}")
    if found.cells and as_json:
        print_json(found.as_dict())
    elif found.cells:
        _print_tables(found)
    if len(found.cells) < found.total:
        raise typer.Exit(STOPPED)


def _print_tables(found: Comparison) -> None:
    from pinoise.experiments.ranking import against_best_rival
    from pinoise.experiments.recipes import RECIPES
    from pinoise.experiments.results import columns

    seeds = len({cell.seed for cell in found.cells})
    bracketed = False
    for name, lines in found.by_data.items():
        _print_lines(name, lines, several=seeds > 1)
        print(f"\n{found.verdicts[name]}")
        if (best := against_best_rival([cell for cell in found.cells if cell.data == name])) is not None:
            bracketed = True
            rival, gap = best
            print(f"PiNDA − {RECIPES[rival].title}, few-label: {gap.mean:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}].")
        print()
    if len(found.by_data) > 1:
        _print_ranking(found.lines)
    if found.held_out:
        _print_held_out(found.held_out)
    over = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    print(f"{_described({line.measured for line in found.lines})}, {over}; fit s: seconds to train.")
    if any("few_standardised" in columns([line.means for line in lines]) for lines in found.by_data.values()):
        print("standardised: few-label after every column is divided by its standard deviation, where that differs.")
    if bracketed:
        drawn = "seeds and draws of labels" if seeds > 1 else "draws of labels"
        print(f"In brackets: 95 % bootstrap interval over {drawn}, for these test rows.")


def _described(measured: set[bool]) -> str:
    """Return what the scores are, of sets with classes (False), with a measurement (True), or of both."""
    from pinoise.evaluation.logistic import LABELS_PER_CLASS
    from pinoise.evaluation.ridge import KNOWN_VALUES

    classes = f"accuracy in percent ({SCORE_MEANINGS}; few-label: LR on {LABELS_PER_CLASS} labels per class, 10 draws)"
    values = f"R² in percent of the variance (few-label: ridge regression on {KNOWN_VALUES} rows, 10 draws)"
    said = " and ".join(text for text, wanted in ((classes, False), (values, True)) if wanted in measured)
    return said[0].upper() + said[1:]


def _print_lines(name: str, lines: list[Line], *, several: bool) -> None:
    """Print the table of one data set."""
    from pinoise.experiments.recipes import RECIPES
    from pinoise.experiments.results import columns

    scores = columns([line.means for line in lines])

    def shown(line: Line, score: str) -> str:
        if score not in line.means:
            return "–"
        return f"{line.means[score]:.1f}" + (f" ±{line.stds[score]:.1f}" if several else "")

    flagged = any(line.flags for line in lines)
    table = [
        [
            RECIPES[line.method].title,
            *(shown(line, score) for score in scores),
            f"{line.seconds:.1f}",
            *([", ".join(line.flags)] if flagged else []),
        ]
        for line in lines
    ]
    titles_of = R2_TITLES if lines[0].measured else SCORE_TITLES
    titles = [name, *(titles_of[score] for score in scores), "fit s", *(["health"] if flagged else [])]
    print_table(titles, table, words=(0, len(scores) + 2))


def _print_ranking(lines: list[Line]) -> None:
    """Print how methods rank over all data sets."""
    from pinoise.experiments.ranking import against_rivals, rank_methods
    from pinoise.experiments.recipes import RECIPES

    scores = ("few", "knn")
    ranks = {score: rank_methods(lines, score) for score in scores}
    found = {score: {item.rival: item for item in against_rivals(lines, score)} for score in scores}
    # Our method, or the best trained one, which may differ between scores.
    subjects = {score: next(iter(items.values())).method for score, items in found.items() if items}
    if not subjects:
        return
    table = []
    for method in dict.fromkeys(line.method for line in lines):
        row = [RECIPES[method].title]
        for score in scores:
            item = found[score].get(method)
            row.append(f"{ranks[score][method]:.2f}" if method in ranks[score] else "")
            row.append("" if item is None else f"{item.wins}–{len(item.losses)}")
            row.append("" if item is None else f"{item.p:.3f}")
            row.append("" if item is None else f"{item.holm:.3f}")
        table.append(row)
    sets = len({line.data for line in lines})
    titles = [f"over {sets} sets"]
    for score in scores:
        titles += [f"{SCORE_TITLES[score]} rank", "won–lost", "p", "Holm"]
    print_table(titles, table)
    titles_of = {score: RECIPES[subject].title for score, subject in subjects.items()}
    against = next(iter(titles_of.values()))
    if len(set(titles_of.values())) > 1:
        against = listed([f"in {SCORE_TITLES[score]} {title}" for score, title in titles_of.items()], last="and")
    print(
        f"\nwon–lost, p (Wilcoxon): {against} against the method of the row; Holm: p corrected for the number of rows."
    )
    if "raw" in found["few"] and found["few"]["raw"].losses:
        below = ", ".join(found["few"]["raw"].losses)
        print(f"With few labels {titles_of['few']} is below raw features on: {below}.")
    print()


def _print_held_out(cells: list[Cell]) -> None:
    """Print one line with the ranks on the sets that no choice was made on."""
    from pinoise.experiments.ranking import rank_methods
    from pinoise.experiments.results import summarise

    def shown(score: str) -> str:
        ranks = rank_methods(summarise(cells), score)
        return f"{SCORE_TITLES[score]} {', '.join(f'{method} {rank:.2f}' for method, rank in ranks.items())}"

    sets = len({cell.data for cell in cells})
    counted = "1 set" if sets == 1 else f"{sets} sets"
    print(f"Ranks on the {counted} that no choice was made on: {'; '.join(map(shown, ('few', 'knn')))}.\n")


def demo(
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds every fit is repeated with.")] = SEEDS,
    json: JsonOption = False,
) -> None:
    """Compare learned noise with its rivals on handwritten digits, in one to three minutes with three seeds.

    Example: `pinoise demo`
    """
    run_comparison(
        "digits",
        changes=[("training.epochs", 60), ("encoder.hidden", 512), ("noise.generator.hidden", 512)],
        seeds=chosen_seeds([seeds]),
        as_json=json,
    )
