"""σ(t) and accuracy(t) of every objective on HAPT-561: the paper's objective collapses, ours does not.

Writes results/collapse.json and the figure in docs/.

PINOISE_DATA=FOLDER python benchmarks/collapse.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch

from pinoise.data import load
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed, few_label_accuracies, knn_accuracy
from pinoise.experiments.sources import sample_rows
from pinoise.modes import flushed_denormals
from pinoise.training.build import seeded_model
from pinoise.training.callbacks import Record, Reporter
from pinoise.training.config import parse_settings
from pinoise.training.folder import describe_environment
from pinoise.training.loop import train
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import machine_of

EPOCHS = 60
EVERY = 10
ROWS = 3000
OBJECTIVES: dict[str, dict[str, Any]] = {
    "supported": {},
    "paper": {"objective": "paper", "method": {"temperature": 0.1}},
    "paper, penalty 1": {"objective": {"name": "paper", "penalty": 1.0}, "method": {"temperature": 0.1}},
    "fixed": {"objective": "fixed"},
    "adversarial": {"objective": "adversarial"},
    "information": {"objective": "information"},
}


class Scorer(Reporter):
    """Scores the encoder during training, with labels that training does not see."""

    def __init__(self, model: ContrastiveModel, score: Any) -> None:
        self.points: list[dict[str, float]] = []
        self._model = model
        self._score = score

    def start(self, *, total_steps: int, done_steps: int) -> None:
        """Score the untrained encoder."""
        self.points.append({"step": 0, **self._score(self._model.method.encoder)})

    def step(self, step: int) -> None:
        """Do nothing."""

    def epoch(self, record: Record) -> None:
        """Keep σ, and the scores every ``EVERY`` epochs."""
        point = {"step": record.step, "sigma": record.metrics["sigma_median"]}
        if record.epoch % EVERY == 0 or record.epoch == 1:
            point.update(self._score(self._model.method.encoder))
        self.points.append(point)


def main() -> None:
    data = sample_rows(load("hapt561"), train=ROWS, test=ROWS)
    assert data.test is not None  # HAPT-561 has both parts, with labels
    assert data.train.y is not None
    assert data.test.y is not None
    y, y_test = data.train.y, data.test.y
    standardizer = Standardizer.fit(data.train.x)
    rows, test_rows = (make_rows(part.x, standardizer) for part in (data.train, data.test))

    def score(encoder: torch.nn.Module) -> dict[str, float]:
        z, z_test = embed(encoder, rows), embed(encoder, test_rows)
        few = few_label_accuracies(z, y, z_test, y_test, draws=5)
        return {"knn": 100 * knn_accuracy(z, y, z_test, y_test), "few": 100 * sum(few) / len(few)}

    curves = {}
    for name, settings in OBJECTIVES.items():
        training = {"epochs": EPOCHS, "information_draws": 0}
        parsed = parse_settings(
            {"encoder": {"hidden": 512}, "noise": {"generator": {"hidden": 512}}, **settings, "training": training}
        )
        model = seeded_model(parsed, standardizer, rows)
        scorer = Scorer(model, score)
        with flushed_denormals():
            train(model, rows, parsed.training, machine=machine_of(parsed.training), reporter=scorer)
        curves[name] = scorer.points
        print(name, scorer.points[-1], flush=True)
    result = {"epochs": EPOCHS, "rows": ROWS, "seed": 0, "curves": curves, "environment": describe_environment()}
    folder = Path(__file__).parent
    (folder / "results" / "collapse.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    draw(curves, folder.parent / "docs" / "collapse.png")


def draw(curves: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Draw σ and both accuracies over steps."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    panels = (("sigma", "median σ (standard deviations)"), ("knn", "kNN (%)"), ("few", "few-label (%)"))
    for axis, (key, title) in zip(axes, panels, strict=True):
        for name, points in curves.items():
            seen = [point for point in points if key in point]
            axis.plot([point["step"] for point in seen], [point[key] for point in seen], label=name)
        axis.set_title(title)
        axis.set_xlabel("step")
    axes[0].set_yscale("log")
    axes[0].set_ylim(bottom=3e-7)  # σ is held at 1e-6
    axes[0].legend(frameon=False, fontsize=8, loc="center right")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
