"""Labelled data to score embeddings on, with rows that no encoder was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from pinoise.choices import MANY_ROWS
from pinoise.data.dataset import Dataset, Part, split
from pinoise.data.lazy import LazyArray
from pinoise.data.options import AS_TRAINED, LaterOptions, ReadOptions
from pinoise.data.preparation import Preparation
from pinoise.data.readers import open_for_training
from pinoise.data.source import is_name
from pinoise.errors import UserError
from pinoise.model import Model

_COUNTED = "they count as errors in every score"
_SHOWN_CLASSES = 10

SCORED_VALUES = 1 << 28
"""Features of all rows, 1 GB in single precision, above which not all rows are scored."""

_MOST_SCORED, _LEAST_SCORED = 50_000, 5_000  # rows of each part then


@dataclass(frozen=True)
class ScoredElsewhere(Dataset):
    """A set to train on, whose labels do not count, with another one whose labels score the embedding."""

    scored: Dataset = field(kw_only=True)


def scored_part(data: Dataset) -> Dataset:
    """Return the set whose rows and labels score what is learned from a set: its own, unless it has another."""
    return data.scored if isinstance(data, ScoredElsewhere) else data


def score_elsewhere(data: Dataset, scored: Dataset) -> ScoredElsewhere:
    """Return a set to train on that is scored on the training and test part of another one of the same shape.

    >>> x, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    >>> labelled = Dataset("few", train=Part(x, y), test=Part(x, y))
    >>> score_elsewhere(Dataset("many", train=Part(np.zeros((9, 2)))), labelled).name
    'many → few'
    """
    if data.shape != scored.shape:
        both_images = len(data.shape) > 1 and len(scored.shape) > 1
        advice = "; bring images to one size with data.size" if both_images else ""
        raise UserError(
            f"samples of {data.name} have shape {data.shape} and those of {scored.name}, to score on, {scored.shape}: "
            f"both must have the same shape{advice}."
        )
    scored = noting_unseen(check_scorable(scored))
    notes = (*data.notes, *(f"{scored.name}: {note}" for note in scored.notes))
    return ScoredElsewhere(f"{data.name} → {scored.name}", train=data.train, notes=notes, scored=scored)


def shown_part(data: Dataset, *, most: int) -> tuple[Part, str]:
    """Return test rows at even distances, or training rows if there are no others, and what they are called.

    >>> part, name = shown_part(Dataset("toy", train=Part(np.arange(9.0)[:, None])), most=3)
    >>> part.x.ravel().tolist(), name
    ([0.0, 3.0, 6.0], 'training')
    """
    part, name = (data.train, "training") if data.test is None else (data.test, "test")
    size = min(len(part), most)
    return part.take(np.arange(size, dtype=np.int64) * len(part) // max(1, size)), name


def is_scorable(data: Dataset) -> bool:
    """Whether a data set has labels in both parts.

    >>> is_scorable(Dataset("toy", train=Part(np.zeros((4, 2)))))
    False
    """
    scored = scored_part(data)
    return scored.test is not None and scored.train.y is not None and scored.test.y is not None


def check_scorable(data: Dataset) -> Dataset:
    """Return the data set if it can score an embedding."""
    if not is_scorable(data):
        name = scored_part(data).name
        raise UserError(f"{name} has no labels to score with: {where_labels_go(data.shape)}.")
    return data


def where_labels_go(shape: tuple[int, ...]) -> str:
    """Return how samples of a shape get labels.

    >>> where_labels_go((13,))
    'name their column with --label'
    """
    if len(shape) > 1:  # images, which have no columns
        return "put images into one folder per class, or arrays beside their labels y in an .npz file"
    return "name their column with --label"


def noting_unseen(data: Dataset) -> Dataset:
    """Add a note on test classes without a training row. No method can name them, so their rows count as errors.

    >>> x, y = np.zeros((3, 1)), np.array([0, 0, 1])
    >>> noting_unseen(Dataset("toy", train=Part(x[:2], y[:2]), test=Part(x, y))).notes
    ('1 of 3 test rows are of 1 class without a training row (1): they count as errors in every score',)
    """
    if isinstance(data, ScoredElsewhere) or data.test is None or data.train.y is None or data.test.y is None:
        return data
    if data.measures or not len(unseen := np.setdiff1d(data.test.y, data.train.y)):
        return data
    rows = int(np.isin(data.test.y, unseen).sum())
    names = [str(number) if data.class_names is None else str(data.class_names[number]) for number in unseen]
    shown = ", ".join(names[:_SHOWN_CLASSES]) + (", …" if len(names) > _SHOWN_CLASSES else "")
    classes = "1 class" if len(unseen) == 1 else f"{len(unseen)} classes"
    note = f"{rows} of {len(data.test)} test rows are of {classes} without a training row ({shown}): {_COUNTED}"
    return replace(data, notes=(*(other for other in data.notes if not other.endswith(_COUNTED)), note))


def fewer_to_score(data: Dataset) -> Dataset:
    """Return a data set with as many rows as scores can hold in memory, drawn at random, with notes that say so.

    More than 2²⁸ features are too many: then each part has at most 50,000 rows, fewer if they are wide, and at least
    5,000. ``--rows`` asks for another number.

    >>> data = Dataset("toy", train=Part(np.zeros((4, 2))))
    >>> fewer_to_score(data) is data
    True
    """
    width = int(np.prod(data.shape))
    rows = len(data.train) + (0 if data.test is None else len(data.test))
    if rows * width <= SCORED_VALUES:
        return data
    most = max(_LEAST_SCORED, min(_MOST_SCORED, SCORED_VALUES // (2 * width)))
    drawn = sample_rows(data, train=most, test=most)
    if drawn is data:
        return data
    return replace(drawn, notes=(*drawn.notes, f"{rows} rows are too many to score: {most} of each part are (--rows)"))


def scored_in_memory(data: Dataset) -> Dataset:
    """Return a set to train on whose rows stay in files, with fewer rows to score; any other set as it is."""
    if isinstance(data, ScoredElsewhere) or not isinstance(data.train.x, LazyArray) or data.train.x.ndim > 2:
        return data
    scored = fewer_to_score(data)
    if scored is data:
        return data
    kept = {field.name: getattr(data, field.name) for field in fields(Dataset)}
    return ScoredElsewhere(**{**kept, "notes": scored.notes}, scored=scored)


def open_compared(
    sources: Sequence[str | Path | Dataset],
    options: ReadOptions,
    *,
    label: str | None = None,
    score_on: str | Path | Dataset | None = None,
    progress: bool = False,
) -> list[Dataset]:
    """Return the data sets of a comparison, each once, with test rows that no encoder is trained on.

    Args:
        sources: names, files, and data sets that are open already.
        options: how files are read and how many rows to train on; their own label does not count.
        label: the label's column in files; names know theirs, so beside a file they do without it.
        score_on: another set, whose labels score what is learned from each of the sources; their own if None.
        progress: whether downloads show a bar.
    """
    named = dict.fromkeys(str(source) for source in sources if not isinstance(source, Dataset))
    scored = None if score_on is None or isinstance(score_on, Dataset) else str(score_on)
    if scored in named or any(source is score_on for source in sources):
        raise UserError(f"{scored or 'the set'} is trained on and scored on anyway: leave out score_on.")
    files = [source for source in (*named, scored) if source is not None and not is_name(source)]
    label_of = {source: label if source in files or not files else None for source in (*named, scored)}

    def read_scored(preparation: Preparation | None) -> Dataset:
        """Return the set to score on, read as the training data was."""
        if isinstance(score_on, Dataset):
            found = score_on
        elif preparation is None:
            found, _ = open_for_training(
                str(score_on), replace(options, label=label_of[scored], rows=None), progress=progress
            )
        else:
            later = LaterOptions(label=label_of[scored])
            found = preparation.read(str(score_on), later, progress=progress)
        return found if found.train.y is None else split(found)

    read: list[tuple[Dataset, Preparation | None]] = [(data, None) for data in sources if isinstance(data, Dataset)]
    for source in named:
        read.append(open_for_training(source, replace(options, label=label_of[source]), progress=progress))
    opened = []
    for data, preparation in read:
        if score_on is not None:
            data = score_elsewhere(data, read_scored(preparation))
        elif preparation is None:
            data = split(data)
        opened.append(noting_unseen(scored_in_memory(data)))
    names: list[str] = []
    for number, data in enumerate(map(check_scorable, opened)):
        again = names.count(data.name)
        names.append(data.name)
        if again:  # results are told apart by name
            opened[number] = replace(data, name=f"{data.name} ({again + 1})")
    return opened


def open_scored(
    run: Model, source: str | None = None, later: LaterOptions = AS_TRAINED, *, progress: bool = False
) -> Dataset:
    """Return the data to score a run on: its own, split as in training, or another source. It may have no labels.

    Args:
        run: a finished run.
        source: a name or a file; the run's own if None.
        later: how another source is read; of the run's own, the label's column may differ.
        progress: whether downloads show a bar.
    """
    label = later.label
    own = source is None or run.was_trained_on(source)
    if own and label in (None, run.settings.data.label):
        _refuse_differences(later)
        return noting_unseen(run.own_data(progress=progress))
    data = run.read(source or run.settings.data.source, later, progress=progress)
    if data.train.y is not None:
        data = split(data)
    if own:
        seen = f"{run.path} was trained on rows that are scored here: train with --label {label} to hold them out"
        data = replace(data, notes=(*data.notes, seen))
        data = data if run.settings.data.rows is None else data.draw(run.settings.data.rows)
    return noting_unseen(data)


def _refuse_differences(later: LaterOptions) -> None:
    for name, value in asdict(replace(later, label=None)).items():
        if value != getattr(AS_TRAINED, name):
            raise UserError(
                f"data.{name} is for other data than the run's own, which is read as in training: give --data, or "
                "leave it out."
            )


def sample_rows(data: Dataset, *, train: int, test: int, seed: int = 0) -> Dataset:
    """Return a data set with fewer training and test rows, drawn at random and kept in their order.

    Labels are not looked at. The rows depend on the seed and on the sizes only, and a larger draw holds the smaller
    ones, unless the set has more than 2²⁰ rows. A set that is small enough is returned as it is.

    >>> data = Dataset("toy", train=Part(np.arange(8.0)[:, None]), test=Part(np.arange(4.0)[:, None]))
    >>> small = sample_rows(data, train=3, test=4)
    >>> len(small.train), len(small.test), small.notes
    (3, 4, ('3 of 8 training rows were drawn at random (seed 0)',))
    """
    cut, train_note = _drawn(data.train, train, "training", [seed, 0])
    cut_test, test_note = (None, "") if data.test is None else _drawn(data.test, test, "test", [seed, 1])
    notes = [note for note in (train_note, test_note) if note]
    return noting_unseen(replace(data, train=cut, test=cut_test, notes=(*data.notes, *notes))) if notes else data


def _drawn(part: Part, rows: int, side: str, seed: list[int]) -> tuple[Part, str]:
    n = len(part)
    if n <= rows:
        return part, ""
    random = np.random.default_rng(seed)
    many = n > MANY_ROWS and rows <= MANY_ROWS  # of which no list is made
    chosen = np.sort(random.choice(n, rows, replace=False) if many else random.permutation(n)[:rows])
    return part.take(chosen), f"{rows} of {n} {side} rows were drawn at random (seed {seed[0]})"
