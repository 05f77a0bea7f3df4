"""Predefined augmentations of images: SimCLR's and BYOL's pipelines and DINO's local crops, on the batch's device.

Every sample draws its own parameters. Several samples share only the order of the colour
changes. Operations are kornia's, unless ``pixels`` is faster with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Generator, Tensor

from pinoise.choices import NonNegative
from pinoise.errors import UserError, needing
from pinoise.modes import Randomness
from pinoise.views.base import Batch, Site, View, per_sample
from pinoise.views.pixels import blur_kernel, crop, draw_boxes, shift_hue, solarise

_BLUR = (0.1, 2.0)  # σ in pixels
_SHARP = 1e-2  # with this σ the kernel is exactly 1 in its middle and 0 elsewhere
_SMALL = 32  # images with sides up to this number of pixels are not blurred, as in SimCLR
_PART = 1 << 18  # values that a CPU recolours at a time, because a whole batch does not fit in its cache

STRENGTH = 1.0  # the factor on the amounts of colour jitter; 1 is the published value

# The share of an image that a global crop keeps if there are local crops. It is larger than any local crop's share.
_GLOBAL_AREA = (0.4, 1.0)
_LOCAL_AREA = (0.05, 0.4)


class ImagePreset(NamedTuple):
    """The ranges and probabilities of a pipeline."""

    area: tuple[float, float] = (0.08, 1.0)  # share of the image that a crop keeps
    flip: float = 0.5
    jitter: float = 0.0  # probability of a change of colour; the four amounts follow
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    grayscale: float = 0.0
    blur: float = 0.0
    solarise: float = 0.0

    @property
    def coloured(self) -> bool:
        """Whether more than the geometry changes. This needs pixels between 0 and 1."""
        return max(self.jitter, self.grayscale, self.blur, self.solarise) > 0


IMAGE_PRESETS: dict[str, ImagePreset] = {
    "simclr": ImagePreset(jitter=0.8, brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2, grayscale=0.2, blur=0.5),
    "byol": ImagePreset(
        jitter=0.8, brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1, grayscale=0.2, blur=0.5, solarise=0.2
    ),
    "crop": ImagePreset(),
}


class ImagePipeline(View):
    """A random resized crop, flip and change of colour of standardised images (m, C, H, W).

    ===========  =====================================================================================================
    ``simclr``   crop, flip, colour jitter, grayscale, blur (Chen et al., 2020; they use strength 0.5 for CIFAR-10)
    ``byol``     the same with weaker jitter, and solarisation (Grill et al., 2020, who give the two views unequal
                 chances of blur and solarisation; here both views have equal chances)
    ``crop``     crop and flip alone, for any number of channels in any units
    ===========  =====================================================================================================

    Images of one channel get brightness and contrast but no saturation, hue or grayscale. Images of up to 32 pixels are
    not blurred, as in SimCLR.

    Args:
        preset: one of ``IMAGE_PRESETS``, or another.
        shape: (C, H, W) of one image.
        mean: per channel; a pixel between 0 and 1 is x · scale + mean.
        scale: per channel; 0 for a constant channel, which stays 0.
        strength: the factor on the amounts of colour jitter.
        size: (height, width) of the result, by default the size of the image.

    >>> pipeline = ImagePipeline(IMAGE_PRESETS["crop"], (5, 8, 8), mean=[0.5] * 5, scale=[0.2] * 5)
    >>> pipeline(Batch(torch.zeros(2, 5, 8, 8), torch.arange(2))).x.shape
    torch.Size([2, 5, 8, 8])
    """

    for_images: ClassVar[bool] = True
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        preset: ImagePreset,
        shape: Sequence[int],
        *,
        mean: Tensor | Sequence[float],
        scale: Tensor | Sequence[float],
        strength: float = STRENGTH,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.preset = preset
        self.shape = tuple(shape)
        self.size = (shape[1], shape[2]) if size is None else size
        self.strength = strength
        if preset.coloured:
            with needing("vision", what="a change of colour"):
                import kornia  # noqa: F401
            if shape[0] not in (1, 3):
                raise UserError(
                    f"images of {shape[0]} channels have no colours to change: choose the pipeline 'crop', or give "
                    "images of 1 or 3 channels."
                )
        for name, values in (("mean", mean), ("scale", scale)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32).reshape(shape[0], 1, 1))

    def forward(self, batch: Batch) -> Batch:
        """Return one augmented version of every image."""
        x = batch.x
        if tuple(x.shape[1:]) != self.shape:
            raise UserError(f"the pipeline is for images of shape {self.shape}, got a batch of {tuple(x.shape)}.")
        generator = batch.generator
        boxes = draw_boxes(len(x), self.shape[1:], area=self.preset.area, device=x.device, generator=generator)
        # Interpolation is linear, so it can come first, in any units. The other changes then have fewer pixels.
        x = crop(x, boxes, _gate(x, self.preset.flip, generator), size=self.size)
        if self.preset.coloured:
            part = max(16, _PART // x.shape[1:].numel()) if x.device.type == "cpu" else len(x)
            with torch.autocast(x.device.type, enabled=False):
                x = torch.cat([self._recolour(images, batch.random) for images in x.split(part)])
        return batch.moved(x)

    def _recolour(self, x: Tensor, random: Randomness | None) -> Tensor:
        pixels = self._change_colours((x * self.scale + self.mean).clamp(0, 1), random)
        return (pixels - self.mean) / torch.where(self.scale > 0, self.scale, torch.inf)

    def _change_colours(self, x: Tensor, random: Randomness | None) -> Tensor:
        from kornia.color import rgb_to_grayscale
        from kornia.filters import gaussian_blur2d

        preset, colours = self.preset, self.shape[0] == 3
        generator = None if random is None else random.on(x.device)
        if preset.jitter > 0:
            x = self._jitter(x, _gate(x, preset.jitter, generator), random)
        if preset.grayscale > 0 and colours:
            x = torch.lerp(x, rgb_to_grayscale(x), per_sample(_gate(x, preset.grayscale, generator).to(x.dtype), x))
        if preset.blur > 0 and max(self.shape[1:]) > _SMALL:
            sigma = torch.where(_gate(x, preset.blur, generator), _uniform(x, _BLUR, generator), _SHARP)
            x = gaussian_blur2d(x, blur_kernel(self.size), sigma[:, None].expand(-1, 2))
        if preset.solarise > 0:
            x = solarise(x, _gate(x, preset.solarise, generator))
        return x

    def _jitter(self, x: Tensor, gate: Tensor, random: Randomness | None) -> Tensor:
        from kornia.enhance import (
            adjust_brightness_accumulative,
            adjust_contrast_with_mean_subtraction,
            adjust_saturation_with_gray_subtraction,
        )

        def around_one(amount: float) -> tuple[float, float]:
            return max(0, 1 - self.strength * amount), 1 + self.strength * amount

        preset = self.preset
        turn = min(0.5, self.strength * preset.hue)
        changes = [
            (adjust_brightness_accumulative, around_one(preset.brightness), 1),
            (adjust_contrast_with_mean_subtraction, around_one(preset.contrast), 1),
            (adjust_saturation_with_gray_subtraction, around_one(preset.saturation), 1),
            (shift_hue, (-turn, turn), 0),
        ]
        if self.shape[0] == 1:
            del changes[2:]
        generator = None if random is None else random.on(x.device)
        # On the CPU, so that nothing waits for a device.
        order = torch.randperm(len(changes), generator=None if random is None else random.on(torch.device("cpu")))
        for number in order.tolist():
            change, span, neutral = changes[number]
            x = change(x, torch.where(gate, _uniform(x, span, generator), neutral))
        return x


class SimCLRPipeline(ImagePipeline):
    """The view ``simclr``: SimCLR's augmentations."""

    @classmethod
    def build(cls, site: Site, *, strength: NonNegative = 0.5) -> ImagePipeline:
        """Return the pipeline. ``strength`` is the factor on the amounts of colour jitter."""
        return _pipeline("simclr", site, strength)


class BYOLPipeline(ImagePipeline):
    """The view ``byol``: BYOL's augmentations."""

    @classmethod
    def build(cls, site: Site, *, strength: NonNegative = STRENGTH) -> ImagePipeline:
        """Return the pipeline. ``strength`` is the factor on the amounts of colour jitter."""
        return _pipeline("byol", site, strength)


class CropPipeline(ImagePipeline):
    """The view ``crop``: random crops and flips."""

    @classmethod
    def build(cls, site: Site) -> ImagePipeline:
        """Return the pipeline."""
        return _pipeline("crop", site, 0.0)


def _pipeline(name: str, site: Site, strength: float) -> ImagePipeline:
    preset = IMAGE_PRESETS[name]
    if site.local_crops:
        preset = preset._replace(area=_GLOBAL_AREA)
    mean, scale = site.pixel_units(f"the view {name!r}")
    return ImagePipeline(preset, site.shape, mean=mean, scale=scale, strength=strength)


def local_crops(site: Site, beside: Sequence[View]) -> ImagePipeline:
    """Return DINO's local views (Caron et al., 2021): small crops of a small part of the image.

    Their size is a multiple of the encoder's patch, and their colours are those of a pipeline in ``beside``.

    Args:
        site: the data and the encoder.
        beside: the views that make the two global views; the first one that changes colours decides.
    """
    mean, scale = site.pixel_units("views.local_crops")
    coloured = [view for view in beside if isinstance(view, ImagePipeline) and view.preset.coloured]
    preset, strength = (coloured[0].preset, coloured[0].strength) if coloured else (IMAGE_PRESETS["crop"], 0.0)
    patch = getattr(site.encoder, "patch", 1)
    size = (local_size(site.shape[1], patch), local_size(site.shape[2], patch))
    small = preset._replace(area=_LOCAL_AREA)
    return ImagePipeline(small, site.shape, mean=mean, scale=scale, strength=strength, size=size)


def local_size(side: int, multiple: int) -> int:
    """Return about half of a side, rounded down to a multiple, and at least one multiple.

    >>> local_size(32, 4), local_size(96, 16), local_size(28, 4), local_size(8, 8)
    (16, 48, 12, 8)
    """
    if not 1 <= multiple <= side:
        raise UserError(f"local crops of {side} pixels cannot be cut into patches of {multiple}: use smaller patches.")
    return max(1, side // 2 // multiple) * multiple


def _gate(x: Tensor, probability: float, generator: Generator | None) -> Tensor:
    return torch.rand(len(x), device=x.device, generator=generator) < probability


def _uniform(x: Tensor, span: tuple[float, float], generator: Generator | None) -> Tensor:
    low, high = span
    return low + (high - low) * torch.rand(len(x), device=x.device, dtype=x.dtype, generator=generator)
