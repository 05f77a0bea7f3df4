"""Noise on the background of images only, a baseline in the paper, and the reader of users' masks."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pinoise.choices import Positive
from pinoise.errors import UserError
from pinoise.files import open_regular
from pinoise.noise import TrainingRows
from pinoise.paper.sam import DEFAULT_SAM, Images, Masks, SamName, kept_masks
from pinoise.views import Batch, Site, View
from pinoise.views.noise import SIGMA


class BackgroundNoise(View):
    """x + σ s ⊙ n on the background, with n ~ N(0, I) and s the standard deviation of each feature; x elsewhere.

    Args:
        feature_scale: s, shape (C, H, W).
        masks: True where a pixel is background, for every training row, shape (n, H, W).
        rows: n, the number of training rows.
        sigma: σ, in units of ``feature_scale``.

    >>> masks = torch.tensor([[[True, False]]])
    >>> view = BackgroundNoise(torch.ones(1, 1, 2), masks, rows=1)
    >>> view(Batch(torch.zeros(1, 1, 1, 2), torch.zeros(1, dtype=torch.long))).x.flatten() == 0
    tensor([False,  True])
    """

    for_images: ClassVar[bool] = True
    by_row = True  # a mask fits only the sample of its own row
    feature_scale: Tensor
    masks: Tensor

    def __init__(self, feature_scale: Tensor, masks: Tensor, rows: int, *, sigma: Positive = SIGMA) -> None:
        super().__init__()
        if feature_scale.ndim != 3:
            raise UserError(
                "background noise is for images of shape (channels, height, width), got samples of shape "
                f"{tuple(feature_scale.shape)}."
            )
        if masks.dtype != torch.bool:
            raise UserError(f"masks must be bool, True where a pixel is background, got {masks.dtype}.")
        _, height, width = feature_scale.shape
        check_masks("the masks", tuple(masks.shape), rows=rows, size=(height, width))
        self.sigma = sigma
        self.register_buffer("feature_scale", feature_scale)
        self.register_buffer("masks", masks, persistent=False)

    @classmethod
    def build(
        cls,
        site: Site,
        *,
        masks: Path | None = None,
        weights: Path | None = None,
        model: SamName = DEFAULT_SAM,
        **options: Any,
    ) -> BackgroundNoise:
        """Return the view with masks from a user's file, or with masks that a Segment-Anything model finds.

        Args:
            site: the data and the encoder.
            masks: a file with one mask for each image of the source, also for images that are not trained on.
            weights: a file with the weights of a Segment-Anything model.
            model: the name of that model.
            options: options of the constructor.
        """
        mean, scale = site.pixel_units("the view 'background'")
        cls.check_options({"masks": masks, "weights": weights})
        if masks is not None:
            origin = getattr(site.rows, "origin", None)
            total, chosen = (len(site.rows), None) if origin is None else (origin.total, np.asarray(origin.rows))
            _, height, width = site.shape
            background = read_masks(masks, rows=total, size=(height, width), chosen=chosen)
        else:
            where = "cuda" if site.device in ("auto", "cuda") and torch.cuda.is_available() else "cpu"
            read = partial(bytes_of, site.rows, mean, scale)
            background = kept_masks(read, len(site.rows), weights or Path(), model=model, device=where)
        return cls(site.unit, torch.from_numpy(background), len(site.rows), **options)

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Refuse to find the background in no way or in two, before any data is read."""
        masks, weights = options["masks"], options["weights"]
        if (masks is None) == (weights is None):
            both = "neither masks nor weights" if masks is None else "masks and weights"
            raise UserError(
                f"the view 'background' was given {both}: name a file of masks, or one with the weights of a "
                "Segment-Anything model."
            )

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise on the background of every image."""
        background = self.masks[batch.rows].unsqueeze(1)  # (m, 1, H, W)
        noise = self.sigma * self.feature_scale * torch.randn_like(batch.x, generator=batch.generator)
        return batch.moved(batch.x + noise * background)


def bytes_of(rows: TrainingRows, mean: Tensor, scale: Tensor, start: int, stop: int) -> Images:
    """Return standardised images as bytes, channels last.

    Args:
        rows: the standardised images.
        mean: per channel; a pixel between 0 and 1 is x · scale + mean.
        scale: per channel.
        start: the number of the first image.
        stop: the number after that of the last image.

    >>> rows = torch.tensor([[[[-1.0, 1.0]]]])  # (1, 1, 1, 2)
    >>> bytes_of(rows, torch.tensor([0.5]), torch.tensor([0.1]), 0, 1).tolist()
    [[[[102], [153]]]]
    """
    x = rows[torch.arange(start, stop)]
    pixels = 255 * (x * scale[:, None, None] + mean[:, None, None])
    return pixels.round().clamp(0, 255).byte().movedim(1, -1).contiguous().numpy()


def check_masks(
    name: str, shape: tuple[int, ...], *, rows: int, size: tuple[int, int], trained: int | None = None
) -> None:
    """Refuse masks whose shape is not (rows, height, width); ``trained`` is the number of these rows in training.

    >>> check_masks("a.npy", (5, 8, 8), rows=6, size=(8, 8))
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.npy: 5 masks for 6 training rows: give one for each, in the order of the rows.
    """
    if len(shape) != 3 or shape[1:] != size:
        raise UserError(
            f"{name}: masks of shape {shape} do not fit the images: give shape (rows, height, width) = {(rows, *size)}."
        )
    if shape[0] != rows:
        if trained is None:
            raise UserError(
                f"{name}: {shape[0]} masks for {rows} training rows: give one for each, in the order of the rows."
            )
        raise UserError(
            f"{name}: {shape[0]} masks for {rows} images ({trained} of them trained on): give one for each of the "
            f"{rows}, in the order of the images."
        )


def read_masks(path: Path, *, rows: int, size: tuple[int, int], chosen: npt.NDArray[np.int64] | None = None) -> Masks:
    """Read masks (n, h, w) that a user supplies, True (or 1, or 255) where a pixel is background.

    Args:
        path: a .npy file, or a .npz file with one array or with an array named ``masks``; bool or uint8.
        rows: n, the number of images in the source.
        size: (h, w) of the images.
        chosen: the numbers of the images whose masks are returned; None for all.
    """
    masks = _read_array(path)
    if masks.dtype not in (np.bool_, np.uint8):
        raise UserError(
            f"{path}: masks must be bool or uint8, True or 1 where a pixel is background, got {masks.dtype}."
        )
    check_masks(str(path), masks.shape, rows=rows, size=size, trained=None if chosen is None else len(chosen))
    if masks.dtype == np.uint8:
        values = np.unique(masks)
        if values.tolist() not in ([0], [1], [255], [0, 1], [0, 255], []):
            shown = ", ".join(map(str, values[:4])) + (", …" if len(values) > 4 else "")
            raise UserError(f"{path}: masks must hold 0 and 1, or 0 and 255, and nothing between, got {shown}.")
    return (masks if chosen is None else masks[chosen]).astype(np.bool_)


def _read_array(path: Path) -> npt.NDArray[Any]:
    if path.suffix not in (".npy", ".npz"):
        raise UserError(f"{path}: masks are read from a .npy or .npz file.")
    try:
        open_regular(path).close()  # a pipe would be waited for
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            names = list(content)
            name = "masks" if "masks" in names else names[0] if len(names) == 1 else None
            if name is None:
                raise UserError(
                    f"{path}: none of its {len(names)} arrays is named 'masks': give the array of masks this name."
                )
            array: npt.NDArray[Any] = content[name]
            return array
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: give the file of masks.") from None
    except UserError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].removesuffix(".")
        raise UserError(
            f"{path} cannot be read as an array of numbers ({reason}): write it again with numpy.save."
        ) from None
