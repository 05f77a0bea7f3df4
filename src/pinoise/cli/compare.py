"""``pinoise compare`` and ``pinoise demo``: methods side by side, on your own data and on handwritten digits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinoise.choices import EMBEDDINGS
from pinoise.cli.console import (
    R2_TITLES,
    SCORE_MEANINGS,
    SCORE_TITLES,
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
    CacheOption,
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
    flag_changes,
)
from pinoise.errors import UserError, either
from pinoise.experiments.recipes import ALWAYS, DEFAULT_METHODS, EPOCHS, IMAGE_METHODS, RECIPES, SEEDS
from pinoise.training.processes import STOPPED

if TYPE_CHECKING:
    from pinoise.experiments.compare import Comparison
    from pinoise.experiments.results import Line

_METHODS = f"{either(tuple(RECIPES))}; several with commas. {either(ALWAYS, last='and')} are always there."
_USUAL = f"{either(DEFAULT_METHODS, last='and')}; for images {either(IMAGE_METHODS, last='and')}"
_SCORE_ON = "A labelled set or file to score on, if it is not the data trained on."
_EMBEDDING = f"{either(EMBEDDINGS)}; joined if not given, learned for images."
_EPOCHS = "How often every fit sees every row."
_STEPS = "About how many steps every fit takes, instead of --epochs."
_SEEDS = "How many seeds every fit is repeated with; several numbers with commas are the seeds."


def compare(
    context: typer.Context,
    data: Annotated[list[str] | None, typer.Option("--data", metavar="SOURCE", help=f"{DATA} Repeatable.")] = None,
    label: LabelOption = None,
    regression: RegressionOption = None,
    text: TextOption = None,
    score_on: Annotated[str | None, typer.Option("--score-on", metavar="SOURCE", help=_SCORE_ON)] = None,
    methods: Annotated[str | None, typer.Option("--methods", help=_METHODS, show_default=_USUAL)] = None,
    seeds: Annotated[str, typer.Option("--seeds", help=_SEEDS)] = str(SEEDS),
    encoder: EncoderOption = None,
    embedding: Annotated[str | None, typer.Option("--embedding", help=_EMBEDDING)] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help=_EPOCHS, show_default=str(EPOCHS))] = None,
    steps: Annotated[int | None, typer.Option("--steps", help=_STEPS)] = None,
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

    Example: `pinoise compare --data digits --methods fixed,scarf,pinda --seeds 3 --epochs 20`
    """
    from pinoise.experiments.cache import default_cache_folder

    if fresh and cache is not None:
        raise UserError("--fresh keeps nothing and --cache says where to: give one of them.")
    _run(
        *(data or ()),
        changes=flag_changes(context, set_, without=("data", "label")),
        cache=None if fresh else cache or default_cache_folder(),
        as_json=json,
        label=label,
        score_on=score_on,
        methods=None if methods is None else methods.split(","),
        seeds=_numbers(seeds),
        embedding=embedding,
        steps=steps,
    )


def demo(
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds every fit is repeated with.")] = SEEDS,
    json: JsonOption = False,
) -> None:
    """Compare learned noise with its rivals on handwritten digits, in one to three minutes with three seeds.

    Example: `pinoise demo`
    """
    small = [("training.epochs", 60), ("encoder.hidden", 512), ("noise.generator.hidden", 512)]
    _run("digits", changes=small, cache=None, as_json=json, seeds=seeds)


def _numbers(text: str) -> int | list[int]:
    """Return a number, or several that have commas between them.

    >>> _numbers("3"), _numbers("7,9")
    (3, [7, 9])
    """
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"--seeds is {text!r}: give a number of seeds, or several seeds with commas.") from None
    return numbers if len(numbers) > 1 else numbers[0]


def _run(*sources: str, changes: list[Change], cache: Path | None, as_json: bool, **asked: Any) -> None:
    """Run ``pinoise.compare`` and print what it found; Ctrl-C prints what is done so far."""
    from pinoise.experiments.compare import compare as run
    from pinoise.training.config import override

    with reporters(epochs=False) as make:
        found = run(
            *sources,
            settings=override({}, changes),
            cache=cache,
            progress=on_terminal(),
            reporter=make,
            note=note,
            keep_partial=True,
            **asked,
        )
    if found.cells and as_json:
        print_json(found.as_dict())
    elif found.cells:
        _print(found)
    if len(found.cells) < found.total:
        again = "" if cache is None else "; the same command goes on from here"
        say(f"stopped after {len(found.cells)} of {found.total} fits{again}")
        raise typer.Exit(STOPPED)


def _print(found: Comparison) -> None:
    """Print a table for every data set, and one over all."""
    from pinoise.experiments.ranking import against_best_rival
    from pinoise.experiments.results import columns

    several = len({cell.seed for cell in found.cells}) > 1
    bracketed = False
    for name, lines in found.by_data.items():
        _print_lines(name, lines, several=several)
        print(f"\n{found.verdicts[name]}")
        if (best := against_best_rival([cell for cell in found.cells if cell.data == name])) is not None:
            bracketed = True
            rival, gap = best
            print(f"PiNDA − {RECIPES[rival].title}, few-label: {gap.mean:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}].")
        print()
    if len(found.by_data) > 1:
        _print_ranking(found.lines)
    seeds = len({cell.seed for cell in found.cells})
    over = f"mean ± standard deviation over {seeds} seeds" if several else "one seed"
    print(f"{_described({line.measured for line in found.lines})}, {over}; fit s: seconds to train.")
    if any("few_standardised" in columns([line.means for line in lines]) for lines in found.by_data.values()):
        print("standardised: few-label after every column is divided by its standard deviation, where that differs.")
    if bracketed:
        drawn = "seeds and draws of labels" if several else "draws of labels"
        print(f"In brackets: 95 % bootstrap interval over {drawn}, for these test rows.")


_RANKED = {"few": SCORE_TITLES["few"], "knn": SCORE_TITLES["knn"]}


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
    from pinoise.experiments.results import columns

    scores = columns([line.means for line in lines])

    def shown(line: Line, score: str) -> str:
        if score not in line.means:
            return "–"
        return f"{line.means[score]:.1f}" + (f" ±{line.stds[score]:.1f}" if several else "")

    flagged = any(line.flags for line in lines)
    table = []
    for line in lines:
        cells = [RECIPES[line.method].title, *(shown(line, score) for score in scores), f"{line.seconds:.1f}"]
        table.append([*cells, ", ".join(line.flags)] if flagged else cells)
    titles_of = R2_TITLES if lines[0].measured else SCORE_TITLES
    titles = [name, *(titles_of[score] for score in scores), "fit s", *(["health"] if flagged else [])]
    print_table(titles, table, words=(0, len(scores) + 2))


def _print_ranking(lines: list[Line]) -> None:
    """Print how methods rank over all data sets, and how ours, or the best trained one, stands against each."""
    from pinoise.experiments.ranking import against_rivals, rank_methods

    ranks = {score: rank_methods(lines, score) for score in _RANKED}
    found = {score: {item.rival: item for item in against_rivals(lines, score)} for score in _RANKED}
    subjects = {score: RECIPES[next(iter(items.values())).method].title for score, items in found.items() if items}
    if not subjects:
        return
    table = []
    for method in dict.fromkeys(line.method for line in lines):
        row = [RECIPES[method].title]
        for score in _RANKED:
            item = found[score].get(method)
            row.append(f"{ranks[score][method]:.2f}" if method in ranks[score] else "")
            stands = ("", "", "") if item is None else (f"{item.wins}–{len(item.losses)}", item.p, item.holm)
            row += [f"{value:.3f}" if isinstance(value, float) else value for value in stands]
        table.append(row)
    titles = [f"over {len({line.data for line in lines})} sets"]
    for title in _RANKED.values():
        titles += [f"{title} rank", "won–lost", "p", "Holm"]
    print_table(titles, table)
    against = next(iter(subjects.values()))
    if len(set(subjects.values())) > 1:
        against = either([f"in {SCORE_TITLES[score]} {title}" for score, title in subjects.items()], last="and")
    print(
        f"\nwon–lost, p (Wilcoxon): {against} against the method of the row; Holm: p corrected for the number of rows."
    )
    if "raw" in found["few"] and found["few"]["raw"].losses:
        print(f"With few labels {subjects['few']} is below raw features on: {', '.join(found['few']['raw'].losses)}.")
    print()
