from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.data.rows import Rows, make_rows
from pinoise.errors import UserError
from pinoise.methods import MoCo
from pinoise.paper.background import BackgroundNoise
from pinoise.training.build import build_model, build_standardizer
from pinoise.training.config import merge, parse_settings
from pinoise.training.objectives import ContrastiveModel
from pinoise.views import Batch, ImagePipeline, View

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


def only_augmentation(model: ContrastiveModel) -> View:
    (view,) = model.pairing.augmentations
    assert isinstance(view, View)
    return view


@pytest.mark.parametrize(
    ("dtype", "white"), [("uint8", 255), ("uint16", 65535), ("int64", 255), ("float32", 255), ("float64", 1)]
)
def test_a_pipeline_knows_the_units_of_pixels(dtype: str, white: int) -> None:
    factor = 257 if white == 65535 else 1 / 255 if white == 1 else 1
    model, rows = build((PIXELS * factor).astype(dtype), views={"augmentations": ["simclr"]})
    view = only_augmentation(model)
    assert isinstance(view, ImagePipeline)
    values = PIXELS.reshape(-1, 3) / 255
    np.testing.assert_allclose(view.mean.flatten(), values.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(view.scale.flatten(), values.std(axis=0), rtol=1e-5)
    batch = everything(rows)
    seen = view(batch).x * view.scale + view.mean
    assert seen.min() >= -1e-5
    assert seen.max() <= 1 + 1e-5
    assert not torch.equal(view(batch).x, batch.x)


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


def test_background_noise_keeps_to_the_masks_of_its_rows(tmp_path: Path) -> None:
    masks = np.random.default_rng(1).random((20, 16, 12)) < 0.3
    np.save(tmp_path / "masks.npy", masks)
    section = {"name": "background", "masks": str(tmp_path / "masks.npy"), "sigma": 2.0}
    for views in ({"noise": section}, {"augmentations": [section]}):
        model, rows = build(PIXELS, views=views)
        view = model.pairing.noise if "noise" in views else only_augmentation(model)
        assert isinstance(view, BackgroundNoise)
        batch = Batch(rows[torch.arange(20)].flip(0), torch.arange(20).flip(0))
        moved = view(batch).x - batch.x
        outside = torch.from_numpy(~masks).flip(0)[:, None].expand_as(moved)
        assert not moved[outside].any()
        assert bool((moved[~outside] != 0).all())
        assert moved[~outside].std() == pytest.approx(2.0, rel=0.1)
        assert torch.isfinite(model(batch).loss)


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
