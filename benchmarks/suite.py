"""Compare methods over a suite of labelled sets, cut to a size at which all of them take about an hour of two cores.

PINOISE_DATA=FOLDER python benchmarks/suite.py vectors [--methods NAME,…] [--seeds N] [--embedding NAME] > vectors.json
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pinoise.choices import EMBEDDINGS, SCORES, EmbeddingName
from pinoise.data.dataset import Dataset, Part
from pinoise.data.options import ReadOptions
from pinoise.data.source import locate
from pinoise.experiments.cache import CellCache, default_cache_folder
from pinoise.experiments.fitting import fit_all
from pinoise.experiments.plans import plan
from pinoise.experiments.ranking import ranking_as_dict
from pinoise.experiments.recipes import choose_methods, installed
from pinoise.experiments.results import Cell, summarise, verdict
from pinoise.experiments.sources import open_compared, sample_rows
from pinoise.files import to_json
from pinoise.modes import flushed_denormals
from pinoise.training.folder import describe_environment


class Suite(NamedTuple):
    """Labelled sets of the catalogue, in the order of their table, with the limits of a comparison on them."""

    sources: Sequence[str]
    methods: Sequence[str]  # compared unless the user names others
    settings: Mapping[str, Any]  # unless the user says otherwise
    steps: int
    rows: int  # the most training rows, and the most test rows
    embeddings: Sequence[EmbeddingName]  # what is scored of every fit; the first is shown
    pixels: int  # the most a side
    scores: Sequence[str] = SCORES  # what is computed; the others are absent
    chosen_on: Sequence[str] = ()  # sets whose validation rows, of the training part, may decide a choice

    @property
    def held_out(self) -> tuple[str, ...]:
        """The sets that decide nothing, and so say how good the choices are."""
        return tuple(source for source in self.sources if source not in self.chosen_on)

    def present(self) -> tuple[str, ...]:
        """Return the sets that can be read now without a download."""
        return tuple(source for source in self.sources if all(locate(source).values()))


SUITES = {
    name: Suite(**values)
    for name, values in tomllib.loads(Path(__file__).with_name("suites.toml").read_text(encoding="utf-8")).items()
}


def opened(suite: Suite) -> Iterator[Dataset]:
    """Read the sets that are here, one after the other, at the size of the suite."""
    for source in suite.present():
        (data,) = open_compared([source], ReadOptions())
        yield shrink_images(sample_rows(data, train=suite.rows, test=suite.rows), most=suite.pixels)


def compared(name: str, methods: Sequence[str], seeds: int, embedding: str | None = None) -> dict[str, Any]:
    """Return what ``pinoise.compare`` would find on all sets, as plain values for JSON."""
    suite = SUITES[name]
    shown = suite.embeddings[0] if embedding is None else EMBEDDINGS[EMBEDDINGS.index(embedding)]
    encoder = suite.settings["encoder"].get("name", "mlp")
    chosen = list(filter(installed, choose_methods(list(methods or suite.methods))))
    plans = plan(chosen, range(seeds), settings=suite.settings, encoder=encoder)
    cells: list[Cell] = []
    with flushed_denormals():
        fits = fit_all(
            opened(suite),
            plans,
            embeddings=[shown],
            scores=suite.scores,
            steps=suite.steps,
            cache=CellCache(default_cache_folder()),
        )
        for cell in fits:
            cells.append(cell)
            print(f"{cell.data} · {cell.method} · seed {cell.seed}", file=sys.stderr, flush=True)
    held_out = [cell for cell in cells if cell.data in suite.held_out] if suite.chosen_on else []
    names = dict.fromkeys(cell.data for cell in cells)
    return {
        "rows": [cell.as_dict() for cell in cells],
        **ranking_as_dict(cells),
        "held_out": ranking_as_dict(held_out) if held_out else None,
        "verdicts": {data: verdict(summarise([cell for cell in cells if cell.data == data])) for data in names},
        "embedding": shown,
        "suite": name,
        "steps": suite.steps,
        "settings": suite.settings,
        "environment": describe_environment(),
    }


def shrink_images(data: Dataset, *, most: int) -> Dataset:
    """Return a data set with smaller images, of at most ``most`` pixels a side; each pixel is the mean of a block.

    >>> data = Dataset("toy", train=Part(np.arange(16.0).reshape(1, 4, 4, 1)))
    >>> shrink_images(data, most=2).train.x[0, :, :, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    if len(data.shape) != 3 or max(data.shape[:2]) <= most:
        return data
    factor = -(-max(data.shape[:2]) // most)
    if data.shape[0] % factor or data.shape[1] % factor:
        return data
    note = f"images were shrunk from {data.shape[0]} × {data.shape[1]} pixels by means of {factor} × {factor}"
    parts = [None if part is None else _pooled(part, factor) for part in (data.train, data.test)]
    assert parts[0] is not None  # every data set has a training part
    return replace(data, train=parts[0], test=parts[1], notes=(*data.notes, note))


def _pooled(part: Part, factor: int) -> Part:
    x = np.asarray(part.x)
    n, height, width, channels = x.shape
    blocks = x.reshape(n, height // factor, factor, width // factor, factor, channels)
    return replace(part, x=blocks.mean(axis=(2, 4), dtype=np.float32))


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--methods", help="names of recipes with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--embedding", choices=EMBEDDINGS)
    asked = parser.parse_args()
    methods = asked.methods.split(",") if asked.methods else []
    print(to_json(compared(asked.suite, methods, asked.seeds, asked.embedding)))


if __name__ == "__main__":
    main()
