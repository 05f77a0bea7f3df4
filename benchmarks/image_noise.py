"""Which noise helps on images, beside augmentations and alone, on a validation part of the training rows.

PINOISE_DATA=FOLDER python benchmarks/image_noise.py [--seeds N] [--methods NAME …]

No test row is used. Sizes are below those of the suite ``images``, so that a fit takes half a minute on one core:
3,000 rows to train on and 3,000 to score, 24 pixels a side, a ResNet18 of width 8, 161 steps of 128. Finished fits are
kept in ``results/image_noise.json``, and a run goes on where it stopped. Candidates that the library does not have are
prototypes in ``image_prototypes.py``.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch.nn import functional as F

from image_prototypes import Bands, Coarse, FeatureNeighbours, NoisyResNet, Scales
from noise_choice import separation
from pinoise.data import Dataset
from pinoise.data.dataset import Part
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed, few_label_accuracies, knn_accuracy
from pinoise.experiments.plans import with_steps
from pinoise.experiments.recipes import RECIPES
from pinoise.modes import flushed_denormals
from pinoise.training.callbacks import Quiet
from pinoise.training.config import merge, parse_settings
from pinoise.training.folder import describe_environment
from pinoise.training.run import fit
from validation import validation

SETS = ("fashion_mnist", "cifar10_sub12k")
ROWS, PIXELS, WIDTH, STEPS = 3000, 24, 8, 150
SETTINGS: dict[str, Any] = {
    "encoder": {"name": "resnet18", "width": WIDTH},
    "noise": {"generator": {"width": WIDTH}},
    "training": {"batch_size": 128, "information_draws": 0},
}
TARGET = Path(__file__).parent / "results" / "image_noise.json"

Configuration = dict[str, Any]


def beside(noise: Any, *, pairing: str = "sampled", objective: Any = "fixed", **noise_settings: Any) -> Configuration:
    """Return settings with noise beside SimCLR's augmentations."""
    views = {"augmentations": ["simclr"], "noise": noise, "pairing": pairing}
    return {"views": views, "objective": objective, "noise": noise_settings}


def on_top(noise: Any, **others: Any) -> Configuration:
    """Return settings with noise on top of views that are an augmented image or the image itself."""
    found = beside(noise, pairing="compose", **others)
    return merge(found, {"views": {"augmentations": ["simclr", "identity"]}})


def alone(noise: Any, *, objective: Any = "fixed", **noise_settings: Any) -> Configuration:
    """Return settings with two draws of noise and no augmentation."""
    return {"views": {"noise": noise, "pairing": "noise-noise"}, "objective": objective, "noise": noise_settings}


def inside(**options: Any) -> Configuration:
    """Return settings with augmentations, and noise in the encoder's maps."""
    encoder = {"name": NoisyResNet, "width": WIDTH, **options}
    return {"views": {"augmentations": ["simclr"], "noise": "none"}, "encoder": encoder}


def coarse(sigma: float, grid: int, *, smooth: bool = True) -> Configuration:
    """Return noise on a coarse grid."""
    return {"name": Coarse, "sigma": sigma, "grid": grid, "smooth": smooth}


AROUND: dict[str, Any] = {"objective": "supported", "neighbours": 0}
CANDIDATES: dict[str, Configuration] = {
    "augmentations": dict(RECIPES["aug"].settings or {}),
    "+ the image itself": beside("identity"),
    "+ random noise, σ = 1": beside("pi", initial_scale=1.0),
    "+ random noise, σ = .25": beside("pi", initial_scale=0.25),
    "random noise on top, σ = .1": beside("pi", pairing="compose", initial_scale=0.1),
    "random noise on top, σ = .25": beside("pi", pairing="compose", initial_scale=0.25),
    "+ PiNDA": beside("pi", **AROUND),
    "PiNDA on top, σ = .25": beside("pi", pairing="compose", **AROUND, initial_scale=0.25),
    "+ PiNDA along the data": beside("pi", objective="supported"),
    "+ differences": beside("pi", **AROUND, covariance="differences"),
    "+ low-frequency, 4 × 4, σ = .5": beside(coarse(0.5, 4)),
    "+ low-frequency, 4 × 4, σ = 1": beside(coarse(1.0, 4)),
    "patch-wise on top, σ = .5": beside(coarse(0.5, 6, smooth=False), pairing="compose"),
    "+ neighbours in features, augmented": {
        "views": {"augmentations": ["simclr", FeatureNeighbours], "noise": "none"},
    },
    "noise in maps, σ learned": inside(sigma=0.5),
    "differences in maps, σ learned": inside(sigma=0.5, kind="differences"),
    "+ the image itself, random noise on top, σ = .25": on_top("pi", initial_scale=0.25),
    "+ the image itself, PiNDA on top, σ = .25": on_top("pi", **AROUND, initial_scale=0.25),
    "+ the image itself, low-frequency on top, σ = .5": on_top(coarse(0.5, 4)),
    "+ the image itself, bands on top, σ learned": on_top({"name": Bands, "sigma": 0.5}, objective="paper"),
    "+ the image itself, differences on top, × .5": on_top("pi", **AROUND, covariance="differences", amplitude=0.5),
    "+ the image itself, differences on top, × 1": on_top("pi", **AROUND, covariance="differences", amplitude=1.0),
    "+ the image itself, differences in maps": merge(
        inside(sigma=0.5, kind="differences"), {"views": {"augmentations": ["simclr", "identity"]}}
    ),
    "alone: random noise, σ = 1": dict(RECIPES["fixed"].settings or {}),
    "alone: PiNDA": dict(RECIPES["pinda"].settings or {}),
    "alone: differences": alone("pi", **AROUND, covariance="differences"),
    "alone: differences × .5": alone("pi", **AROUND, covariance="differences", amplitude=0.5),
    "alone: mixed × .5": alone("pi", objective="supported", covariance="mixed", amplitude=0.5),
    "alone: PiNDA, 0 neighbours, σ = .25": alone("pi", **AROUND, initial_scale=0.25),
    "alone: low-frequency, 4 × 4, σ = 1": alone(coarse(1.0, 4)),
    "alone: any scale, σ = 1": alone({"name": Scales, "sigma": 1.0}),
    "alone: bands, σ learned": alone({"name": Bands, "sigma": 1.0}, objective="paper"),
}


def resized(data: Dataset) -> Dataset:
    """Return the images at the size of this study."""
    assert data.test is not None  # validation() makes a test part

    def small(part: Part) -> Part:
        x = torch.from_numpy(np.asarray(part.x)).reshape(len(part), *data.shape[:2], -1).movedim(3, 1).float()
        x = F.interpolate(x, (PIXELS, PIXELS), mode="bilinear", antialias=True, align_corners=False)
        return replace(part, x=x.round().clamp(0, 255).byte().movedim(1, 3).contiguous().numpy())

    return replace(data, train=small(data.train), test=small(data.test))


def one_fit(data: Dataset, name: str, *, seed: int) -> dict[str, Any]:
    """Fit a candidate and score its embedding on the validation rows."""
    assert data.test is not None  # validation() makes a test part
    assert data.train.y is not None
    assert data.test.y is not None
    settings = parse_settings(merge(merge(SETTINGS, CANDIDATES[name]), {"training": {"seed": seed}}))
    standardizer = Standardizer.fit(data.train.x, scaling="channels")
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    began = time.perf_counter()
    fitted = fit(with_steps(settings, STEPS, rows=len(rows)), standardizer, rows, reporter=Quiet())
    seconds = time.perf_counter() - began
    z, z_held_out = embed(fitted.embedding, rows), embed(fitted.embedding, held_out)
    few = few_label_accuracies(z, data.train.y, z_held_out, data.test.y, seed=seed)
    return {
        "data": data.name,
        "noise": name,
        "seed": seed,
        "knn": round(100 * knn_accuracy(z, data.train.y, z_held_out, data.test.y), 2),
        "few": round(100 * float(np.mean(few)), 2),
        "separation": round(separation(torch.from_numpy(z[:512])), 4),
        "flags": [flag.name for flag in fitted.flags],
        "seconds": round(seconds, 1),
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each candidate: kNN and few-label accuracy on every set, flags and seconds."""
    head = [f"{data}, {score}" for data in SETS for score in ("kNN", "few-label")]
    lines = [f"| | {' | '.join(head)} | seeds | flags | fit (s) |", f"|---|{'---|' * (len(head) + 3)}"]
    for name in CANDIDATES:
        mine = [row for row in rows if row["noise"] == name]
        if not mine:
            continue
        figures = []
        for data in SETS:
            for score in ("knn", "few"):
                values = [row[score] for row in mine if row["data"] == data]
                spread = f" ± {pstdev(values):.1f}" if len(values) > 1 else ""
                figures.append(f"{fmean(values):.1f}{spread}" if values else "–")
        flags = sorted({f"{row['data']}: {flag}" for row in mine for flag in row["flags"]})
        seeds, seconds = len({row["seed"] for row in mine}), fmean(row["seconds"] for row in mine)
        lines.append(f"| {name} | {' | '.join(figures)} | {seeds} | {', '.join(flags)} | {seconds:.0f} |")
    return lines


def chosen(rows: list[dict[str, Any]]) -> list[str]:
    """Return what a choice by the score of ``auto`` gives among the candidates of seed 0."""
    lines = [
        "| | the silhouette's choice | its kNN | the best kNN | Kendall's τ of silhouette and kNN |",
        "|---|---|---|---|---|",
    ]
    for data in SETS:
        for title, is_alone in (("beside augmentations", False), ("alone", True)):
            here = [row for row in rows if row["data"] == data and row["seed"] == 0]
            here = [row for row in here if row["noise"].startswith("alone") == is_alone]
            tau = stats.kendalltau([row["separation"] for row in here], [row["knn"] for row in here]).statistic
            mine, best = (max(here, key=itemgetter(key)) for key in ("separation", "knn"))
            figures = f"{mine['knn']:.1f} | {best['knn']:.1f} ({best['noise']}) | {tau:.2f}"
            lines.append(f"| {data}, {title} | {mine['noise']} | {figures} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=list(CANDIDATES))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = json.loads(TARGET.read_text(encoding="utf-8"))["rows"] if TARGET.exists() else []
    done = {(row["data"], row["noise"], row["seed"]) for row in rows}
    sets = {name: resized(validation(name, rows=2 * ROWS, share=0.5)) for name in SETS}
    for seed in range(asked.seeds):
        for name in asked.methods:
            for data in sets.values():
                if (data.name, name, seed) in done:
                    continue
                with flushed_denormals():
                    rows.append(one_fit(data, name, seed=seed))
                print(rows[-1], flush=True)
                result = {"rows": rows, "environment": describe_environment()}
                TARGET.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print("\n".join([*table(rows), "", *chosen(rows)]))


if __name__ == "__main__":
    main()
