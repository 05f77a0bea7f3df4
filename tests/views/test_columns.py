"""Predefined views exchange a whole category, not one of its features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.methods.clae import CLAE
from pinoise.networks import MLPEncoder
from pinoise.training.build import build_view, make_site
from pinoise.training.config import parse_settings
from pinoise.views import Batch, Site

RATES = {"scarf": 0.6, "vime": 0.3, "gaussian": 0.5}


@pytest.fixture
def site() -> Site:
    """A table of a number and a category of five values."""
    random = np.random.default_rng(0)
    x = np.column_stack([random.normal(size=300), np.eye(5)[random.integers(5, size=300)]])
    standardizer = Standardizer.fit(x, spans=((1, 6),))
    return make_site(parse_settings({}), standardizer, make_rows(x, standardizer), MLPEncoder((6,), hidden=8))


@pytest.mark.parametrize("name", ["scarf", "vime", "gaussian", "dacl", "viewmaker", "neighbours"])
def test_a_view_leaves_every_sample_with_one_category(site: Site, name: str) -> None:
    x = site.rows[torch.arange(300)]
    categories = x[:, 1:].unique(dim=0)
    objective = "adversarial" if name == "viewmaker" else "supported"
    settings = parse_settings({"views": {"augmentations": [name]}, "objective": objective})
    torch.manual_seed(0)
    moved = build_view(settings.views.augmentations[0], site)(Batch(x, torch.arange(300))).x
    distance, chosen = torch.cdist(moved[:, 1:], categories).min(dim=1)
    assert distance.max() < 1e-3
    assert (moved[:, 0] != x[:, 0]).any()
    if name in RATES:  # a fifth of the draws is the category itself
        changed = (chosen != torch.cdist(x[:, 1:], categories).argmin(dim=1)).float().mean()
        assert float(changed) == pytest.approx(0.8 * RATES[name], abs=0.08)


def test_an_adversarial_step_leaves_categories_as_they_are(site: Site) -> None:
    assert CLAE.build(site).feature_scale.tolist() == [1, 0, 0, 0, 0, 0]
