from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.views import IMAGE_PRESETS, Batch, ImagePipeline, ImagePreset, Site, View, local_crops

pytest.importorskip("kornia")

MEAN = (0.5, 0.4, 0.3)
SCALE = (0.25, 0.2, 0.3)
WHOLE = ImagePreset(area=(1.0, 1.0), flip=0.0)  # changes nothing


def standard(pixels: Tensor) -> Tensor:
    channels = pixels.shape[1]
    mean, scale = (torch.tensor(values[:channels], dtype=pixels.dtype)[:, None, None] for values in (MEAN, SCALE))
    return (pixels - mean) / scale


def undo(x: Tensor) -> Tensor:
    channels = x.shape[1]
    mean, scale = (torch.tensor(values[:channels], dtype=x.dtype)[:, None, None] for values in (MEAN, SCALE))
    return x * scale + mean


def batch_of(pixels: Tensor) -> Batch:
    return Batch(standard(pixels), torch.arange(100, 100 + len(pixels)))


def pipeline(preset: str | ImagePreset, shape: Sequence[int], **settings: Any) -> ImagePipeline:
    preset = IMAGE_PRESETS[preset] if isinstance(preset, str) else preset
    return ImagePipeline(preset, shape, mean=MEAN[: shape[0]], scale=SCALE[: shape[0]], **settings)


def applied(preset: ImagePreset, pixels: Tensor, **settings: Any) -> Tensor:
    """The pixels that a pipeline makes of others."""
    return undo(pipeline(preset, pixels.shape[1:], **settings)(batch_of(pixels)).x)


@pytest.mark.parametrize("name", IMAGE_PRESETS)
@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 12, 20), (3, 40, 36)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_pipeline_keeps_shape_type_rows_range_and_the_original(
    name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    batch = batch_of(torch.rand(20, *shape, dtype=dtype))
    original = batch.x.clone()
    result = pipeline(name, shape).to(dtype)(batch)
    assert result.x.shape == batch.x.shape
    assert result.x.dtype == dtype
    assert torch.equal(result.rows, batch.rows)
    assert torch.equal(batch.x, original)
    assert not torch.allclose(result.x, batch.x)
    pixels = undo(result.x)
    assert float(pixels.min()) > -1e-5
    assert float(pixels.max()) < 1 + 1e-5


@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 10, 10), (3, 36, 36)])
def test_a_pipeline_without_any_probability_changes_nothing(shape: tuple[int, ...]) -> None:
    batch = batch_of(torch.rand(8, *shape))
    torch.testing.assert_close(pipeline(WHOLE, shape)(batch).x, batch.x, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", IMAGE_PRESETS)
def test_the_seed_of_torch_alone_decides(name: str) -> None:
    batch, view = batch_of(torch.rand(9, 3, 34, 34)), pipeline(name, (3, 34, 34))
    results: list[Tensor] = []
    for seed in (5, 5, 6):
        random.seed(len(results))
        np.random.seed(len(results))  # noqa: NPY002
        torch.manual_seed(seed)
        results.append(view(batch).x)
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_row_i_is_a_view_of_row_i_also_where_the_batch_is_coloured_in_parts() -> None:
    pixels = torch.rand(3000, 3, 8, 8)  # more than are coloured at a time
    result = applied(WHOLE._replace(solarise=1.0, jitter=0.5, brightness=0.01), pixels)
    assert float((result - torch.minimum(pixels, 1 - pixels)).abs().max()) < 0.02


@pytest.mark.parametrize("flip", [0.0, 0.3, 1.0])
def test_an_image_is_mirrored_as_often_as_it_should(flip: float) -> None:
    pixels = torch.rand(2000, 1, 4, 4)
    result = applied(WHOLE._replace(flip=flip), pixels)
    mirrored = ((result - pixels.flip(-1)).abs().amax(dim=(1, 2, 3)) < 1e-4).float()
    same = ((result - pixels).abs().amax(dim=(1, 2, 3)) < 1e-4).float()
    assert bool((mirrored + same == 1).all())
    assert float(mirrored.mean()) == pytest.approx(flip, abs=0.035)


def test_colours_change_as_often_as_they_should_and_grey_has_equal_channels() -> None:
    pixels = 0.3 + 0.4 * torch.rand(2000, 3, 4, 4)
    jittered = applied(WHOLE._replace(jitter=0.8, brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1), pixels)
    changed = (jittered - pixels).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert float(changed.float().mean()) == pytest.approx(0.8, abs=0.03)
    grey = applied(WHOLE._replace(grayscale=0.2), pixels)
    changed = (grey - pixels).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert float(changed.float().mean()) == pytest.approx(0.2, abs=0.03)
    luma = (pixels * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(1, keepdim=True).expand_as(pixels)
    torch.testing.assert_close(grey[changed], luma[changed], atol=1e-5, rtol=0)


def test_solarised_and_blurred_images_are_as_many_as_they_should() -> None:
    pixels = torch.rand(1000, 1, 33, 33)
    solar = applied(WHOLE._replace(solarise=0.2), pixels)
    changed = (solar - pixels).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert float(changed.float().mean()) == pytest.approx(0.2, abs=0.04)
    torch.testing.assert_close(solar[changed], torch.minimum(pixels, 1 - pixels)[changed], atol=1e-5, rtol=0)
    blurred = applied(WHOLE._replace(blur=0.5), pixels)
    changed = (blurred - pixels).abs().amax(dim=(1, 2, 3)) > 1e-4
    # A σ of less than a fifth of a pixel blurs nothing that could be seen.
    assert float(changed.float().mean()) == pytest.approx(0.5 * (2 - 0.23) / 1.9, abs=0.04)
    assert bool((blurred.std(dim=(1, 2, 3)) < pixels.std(dim=(1, 2, 3)))[changed].all())
    torch.testing.assert_close(blurred.mean(dim=(1, 2, 3)), pixels.mean(dim=(1, 2, 3)), atol=0.05, rtol=0)


def test_small_images_are_not_blurred() -> None:
    pixels = torch.rand(8, 3, 32, 32)
    torch.testing.assert_close(applied(WHOLE._replace(blur=1.0), pixels), pixels, atol=1e-5, rtol=0)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_brightness_is_a_factor_for_each_image_in_the_range_of_the_strength(strength: float) -> None:
    pixels = 0.05 + 0.4 * torch.rand(1000, 3, 3, 3)
    result = applied(WHOLE._replace(jitter=1.0, brightness=0.8), pixels, strength=strength)
    factor = (result / pixels).flatten(1)
    torch.testing.assert_close(factor, factor[:, :1].expand_as(factor), atol=1e-4, rtol=0)
    low, high = 1 - 0.8 * strength, 1 + 0.8 * strength
    assert low - 1e-3 < float(factor.min()) < low + 0.02
    assert high - 0.02 < float(factor.max()) < high + 1e-3


@pytest.mark.parametrize("channels", [2, 5])
def test_other_numbers_of_channels_are_cropped_but_have_no_colours(channels: int) -> None:
    mean, scale = [0.5] * channels, [0.2] * channels
    x = torch.randn(4, channels, 8, 8)
    view = ImagePipeline(IMAGE_PRESETS["crop"], (channels, 8, 8), mean=mean, scale=scale)
    assert view(Batch(x, torch.arange(4))).x.shape == x.shape
    for name in ("simclr", "byol"):
        with pytest.raises(UserError, match=f"images of {channels} channels .*'crop'"):
            ImagePipeline(IMAGE_PRESETS[name], (channels, 8, 8), mean=mean, scale=scale)


def test_a_constant_channel_stays_zero() -> None:
    view = ImagePipeline(IMAGE_PRESETS["simclr"], (3, 8, 8), mean=MEAN, scale=(0.2, 0.0, 0.3))
    x = torch.randn(6, 3, 8, 8)
    x[:, 1] = 0
    result = view(Batch(x, torch.arange(6))).x
    assert bool(result.isfinite().all())
    assert bool((result[:, 1] == 0).all())


def test_images_of_another_shape_are_refused() -> None:
    with pytest.raises(UserError, match=r"shape \(3, 8, 8\), got a batch of \(2, 3, 9, 8\)"):
        pipeline("crop", (3, 8, 8))(batch_of(torch.rand(2, 3, 9, 8)))


def test_colours_without_kornia_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kornia", None)
    with pytest.raises(UserError, match=r"pip install 'pinoise\[vision\]'"):
        pipeline("simclr", (3, 8, 8))
    pipeline("crop", (3, 8, 8))


class Patches(torch.nn.Identity):
    """An encoder of images that are cut into patches."""

    def __init__(self, patch: int) -> None:
        super().__init__()
        self.patch = patch


def crops_beside(views: Sequence[View], shape: tuple[int, ...], *, patch: int = 1) -> ImagePipeline:
    site = Site(
        unit=torch.ones(shape),
        rows=torch.zeros(2, *shape),
        encoder=Patches(patch),
        head_hidden=2,
        head_features=2,
        batch_size=2,
        pixel_mean=torch.tensor(MEAN[: shape[0]]),
        pixel_scale=torch.tensor(SCALE[: shape[0]]),
    )
    return local_crops(site, views)


@pytest.mark.parametrize(
    ("shape", "multiple", "size"), [((3, 32, 32), 4, (16, 16)), ((1, 28, 20), 4, (12, 8)), ((3, 9, 9), 1, (4, 4))]
)
def test_local_crops_are_about_half_as_large_and_whole_patches(
    shape: tuple[int, ...], multiple: int, size: tuple[int, int]
) -> None:
    crops = crops_beside([pipeline("byol", shape)], shape, patch=multiple)
    batch = batch_of(torch.rand(5, *shape))
    draws = crops.draw(batch, 3)
    assert [draw.x.shape for draw in draws] == [(5, shape[0], *size)] * 3
    assert all(torch.equal(draw.rows, batch.rows) for draw in draws)
    assert not torch.equal(draws[0].x, draws[1].x)
    assert float(undo(torch.cat([draw.x for draw in draws])).min()) > -1e-5


def test_local_crops_show_a_small_part_of_the_image() -> None:
    ramp = torch.linspace(0, 1, 64)
    pixels = torch.stack([ramp.expand(64, 64), ramp[:, None].expand(64, 64)]).expand(500, -1, -1, -1)
    crops = crops_beside([], (2, 64, 64))
    seen = undo(crops(batch_of(pixels)).x).flatten(2)
    width, height = (seen.amax(2) - seen.amin(2)).unbind(1)
    share = width * height
    assert 0.02 < float(share.min()) < 0.07
    assert 0.33 < float(share.max()) < 0.42


def test_patches_larger_than_the_image_are_refused() -> None:
    with pytest.raises(UserError, match="local crops of 8 pixels cannot be cut into patches of 16"):
        crops_beside([], (3, 8, 8), patch=16)
