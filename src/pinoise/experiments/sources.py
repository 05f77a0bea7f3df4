"""Labelled data to score embeddings on, always with rows that no encoder was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pinoise.data.catalogue import is_name
from pinoise.data.dataset import Dataset
from pinoise.data.options import ReadOptions
from pinoise.data.readers import open_for_training
from pinoise.data.splitting import split
from pinoise.errors import UserError
from pinoise.training.load import Run


def check_scorable(data: Dataset) -> Dataset:
    """Return the data set if it can score an embedding."""
    if data.test is None or data.train.y is None or data.test.y is None:
        where = "name their column with --label"
        if len(data.shape) > 1:  # images, which have no columns
            where = "put images into one folder per class, or arrays beside their labels y in an .npz file"
        raise UserError(f"{data.name} has no labels to score with: {where}.")
    return data


def open_compared(
    sources: Sequence[str | Path | Dataset], options: ReadOptions, *, label: str | None = None, progress: bool = False
) -> list[Dataset]:
    """Return the data sets of a comparison, each once, with test rows that no encoder is trained on.

    Args:
        sources: names, files, and data sets that are open already.
        options: how files are read and how many rows to train on; their own label does not count.
        label: the label's column in files; names know theirs, so beside a file they do without it.
        progress: whether downloads show a bar.
    """
    named = dict.fromkeys(str(source) for source in sources if not isinstance(source, Dataset))
    has_file = not all(map(is_name, named))
    opened = [split(source) if source.test is None else source for source in sources if isinstance(source, Dataset)]
    for source in named:
        asked = replace(options, label=None if is_name(source) and has_file else label)
        opened.append(open_for_training(source, asked, progress=progress)[0])
    return [check_scorable(data) for data in opened]


def open_scored(run: Run, source: str | None = None, *, label: str | None = None, progress: bool = False) -> Dataset:
    """Return the data to score a run on: its own, split as in training, or another source.

    Args:
        run: a finished run.
        source: a name or a file; the run's own if None.
        label: the label's column, if it differs from the one in training.
        progress: whether downloads show a bar.
    """
    own = source is None or run.was_trained_on(source)
    if own and label in (None, run.settings.data.label):
        return check_scorable(run.own_data(progress=progress))
    data = run.read(source or run.settings.data.source, label=label, progress=progress)
    if data.train.y is not None:
        data = split(data)
    if own:
        seen = f"{run.path} was trained on rows that are scored here: train with --label {label} to hold them out"
        data = replace(data, notes=(*data.notes, seen))
        data = data if run.settings.data.rows is None else data.draw(run.settings.data.rows)
    return check_scorable(data)
