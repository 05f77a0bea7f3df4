from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pinoise.data.rows import Rows, make_rows
from pinoise.errors import UserError
from pinoise.methods import MoCo
from pinoise.training.build import build_model, build_standardizer
from pinoise.training.config import merge, parse_settings
from pinoise.training.objectives import ContrastiveModel
from pinoise.views import Batch, ImagePipeline

pytest.importorskip("kornia")

COMMON: dict[str, Any] = {
    "encoder": {"name": "resnet18", "width": 4},
    "head": {"hidden": 8, "out_features": 4},
    "training": {"batch_size": 10},
}
PIXELS = np.random.default_rng(0).integers(0, 256, (20, 16, 12, 3), dtype=np.uint8) // [[[[1, 2, 4]]]]


def build(x: np.ndarray, **changes: Any) -> tuple[ContrastiveModel, Rows]:
    settings = parse_settings(merge(COMMON, changes))
    standardizer = build_standardizer(settings, x)
    rows = make_rows(x, standardizer)
    torch.manual_seed(0)
    return build_model(settings, standardizer, rows), rows


def everything(rows: Rows) -> Batch:
    return Batch(rows[torch.arange(len(rows))], torch.arange(len(rows)))


@pytest.mark.parametrize(
    ("augmentations", "encoder", "size", "jitter"),
    [
        (["crop", {"name": "simclr", "strength": 0.3}, "byol"], "resnet18", (8, 6), 0.3),
        (["crop"], "resnet18", (8, 6), 0.0),
        ([], "resnet18", (8, 6), 0.0),
        (["byol"], "vit", (8, 4), 1.0),
    ],
)
def test_local_crops_have_the_colours_of_the_first_pipeline_and_fit_the_encoder(
    augmentations: list[Any], encoder: str, size: tuple[int, int], jitter: float
) -> None:
    sections: dict[str, Any] = {
        "resnet18": COMMON["encoder"],
        "vit": {"name": "vit", "patch": 4, "dim": 12, "depth": 1},
    }
    views = {"augmentations": augmentations, "local_crops": 2}
    model, rows = build(PIXELS, method="dino", encoder=sections[encoder], views=views)
    local = model.pairing.local
    assert isinstance(local, ImagePipeline)
    assert (local.size, local.strength) == (size, jitter)
    assert local.preset.coloured is (jitter > 0)
    for view in model.pairing.augmentations:
        assert isinstance(view, ImagePipeline)
        assert view.preset.area[0] >= local.preset.area[1]  # global views show more than any local one
    seen = model.pairing(everything(rows))
    assert [tuple(view.x.shape[2:]) for view in seen] == [(16, 12)] * 2 + [size] * 2
    assert torch.isfinite(model(everything(rows)).loss)


@pytest.mark.parametrize(
    ("batch_size", "queue", "fits"), [(10, 20, True), (10, 19, False), (256, 40, True), (256, 39, False)]
)
def test_a_queue_holds_at_least_the_keys_of_a_step(batch_size: int, queue: int, fits: bool) -> None:
    changes: dict[str, Any] = {"method": {"name": "moco", "queue": queue}, "training": {"batch_size": batch_size}}
    if fits:
        model, _ = build(PIXELS, **changes)
        assert isinstance(model.method, MoCo)
        assert model.method.queue.shape == (queue, 4)
        return
    used = min(batch_size, 20)  # there are no more rows
    with pytest.raises(UserError, match=rf"method.queue is {queue} but a step makes {2 * used} keys, two for each"):
        build(PIXELS, **changes)
