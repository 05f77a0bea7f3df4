"""What choices are made on: fits and scores on a part of the training rows. No test row is used."""

from __future__ import annotations

import numpy as np
from torch import nn

from pinoise.data import Dataset, load
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed, few_label_accuracies, knn_accuracy
from pinoise.experiments.sources import sample_rows
from pinoise.training.build import seeded_model
from pinoise.training.callbacks import Quiet
from pinoise.training.config import Settings
from pinoise.training.loop import train
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import machine_of
from suite import SUITES, shrink_images

SUITE = SUITES["vectors"]


def validation(name: str, *, rows: int = SUITE.rows * 4 // 3, share: float = 0.25) -> Dataset:
    """Return at most ``rows`` training rows of a data set, with a share of them as the test part."""
    return split(load(name), rows=rows, share=share)


def split(data: Dataset, *, rows: int = SUITE.rows * 4 // 3, share: float = 0.25) -> Dataset:
    """Return the same of a data set that is read already."""
    part = shrink_images(sample_rows(data, train=rows, test=1), most=SUITE.pixels).train
    order = np.random.default_rng(0).permutation(len(part))
    cut = int((1 - share) * len(part))
    return Dataset(data.name, part.take(np.sort(order[:cut])), part.take(np.sort(order[cut:])))


def fitted(settings: Settings, standardizer: Standardizer, rows: Rows) -> ContrastiveModel:
    """Return a model that is trained on standardised rows, ready to embed."""
    model = seeded_model(settings, standardizer, rows)
    train(model, rows, settings.training, machine=machine_of(settings.training), reporter=Quiet())
    return model.eval()


def scores(embedding: nn.Module, data: Dataset, rows: Rows, held_out: Rows, *, seed: int) -> dict[str, float]:
    """Return the few-label and the kNN accuracy of an embedding on the validation rows, in percent."""
    assert data.test is not None  # validation() makes a test part
    y, y_held_out = data.train.y, data.test.y
    assert y is not None
    assert y_held_out is not None
    z, z_held_out = embed(embedding, rows), embed(embedding, held_out)
    few = few_label_accuracies(z, y, z_held_out, y_held_out, seed=seed)
    return {
        "few": round(100 * float(np.mean(few)), 2),
        "knn": round(100 * knn_accuracy(z, y, z_held_out, y_held_out), 2),
    }
