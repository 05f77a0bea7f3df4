"""What choices are made on: fits and scores on a part of the training rows. No test row is used."""

from __future__ import annotations

import numpy as np

from pinoise.data import Dataset, load
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.recipes import find_suite
from pinoise.experiments.sources import sample_rows, shrink_images
from pinoise.training.build import seeded_model
from pinoise.training.config import Settings
from pinoise.training.device import make_fabric
from pinoise.training.loop import train
from pinoise.training.model import ContrastiveModel
from pinoise.training.progress import Quiet

SUITE = find_suite("vectors")


def validation(name: str, *, rows: int = SUITE.rows * 4 // 3, share: float = 0.25) -> Dataset:
    """Return at most ``rows`` training rows of a data set, with a share of them as the test part."""
    part = shrink_images(sample_rows(load(name), train=rows, test=1), most=SUITE.pixels).train
    order = np.random.default_rng(0).permutation(len(part))
    cut = int((1 - share) * len(part))
    return Dataset(name, part.take(np.sort(order[:cut])), part.take(np.sort(order[cut:])))


def fitted(settings: Settings, standardizer: Standardizer, rows: Rows) -> ContrastiveModel:
    """Return a model that is trained on standardised rows, ready to embed."""
    model = seeded_model(settings, standardizer, rows)
    train(model, rows, settings.training, fabric=make_fabric(settings.training), reporter=Quiet())
    return model.eval()
