"""Noise on the background of images only, a baseline in the paper, and the reader of users' masks."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pinoise.choices import Positive
from pinoise.errors import UserError
from pinoise.files import open_regular
from pinoise.views.base import Batch, Site, View
from pinoise.views.mask_cache import cached_masks
from pinoise.views.noise import SIGMA
from pinoise.views.segment import DEFAULT_SAM, SamName


class ImageBytes(Protocol):
    """Training images as bytes, channels last, made on request."""

    shape: tuple[int, ...]  # (n, H, W, C)
    source_rows: npt.NDArray[np.int64] | None  # their numbers in the source; None for all images of the source
    source_total: int  # the number of images in the source

    def __len__(self) -> int:
        """The number of images."""
        ...

    def __getitem__(self, part: slice, /) -> npt.NDArray[np.uint8]:
        """Return some images, (m, H, W, C)."""
        ...


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
        if site.images is None:
            raise UserError(f"the view 'background' is for images: these samples have shape {site.shape}.")
        cls.check_options({"masks": masks, "weights": weights})
        images = site.images()
        if masks is not None:
            background = read_masks(
                masks, rows=images.source_total, size=(images.shape[1], images.shape[2]), chosen=images.source_rows
            )
        else:
            background = _segmented(images, weights or Path(), model=model, device=site.device, progress=site.progress)
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

    @property
    def by_row(self) -> bool:
        """A mask fits only the sample of its own row."""
        return True

    def forward(self, batch: Batch) -> Batch:
        """Return the batch with fresh noise on the background of every image."""
        background = self.masks[batch.rows].unsqueeze(1)  # (m, 1, H, W)
        noise = self.sigma * self.feature_scale * torch.randn_like(batch.x, generator=batch.generator)
        return batch.moved(batch.x + noise * background)


def _segmented(
    images: ImageBytes, weights: Path, *, model: SamName, device: str, progress: bool
) -> npt.NDArray[np.bool_]:
    """Return the masks that a model finds. Several processes share the work."""
    from tqdm import tqdm

    where = "cuda" if device in ("auto", "cuda") and torch.cuda.is_available() else "cpu"
    with tqdm(total=len(images), desc="finding the background", disable=not progress, leave=False) as bar:

        def show(done: int, _: int) -> None:
            bar.update(done - bar.n)

        return cached_masks(images, weights, model=model, device=where, progress=show)  # type: ignore[arg-type]


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


def read_masks(
    path: Path, *, rows: int, size: tuple[int, int], chosen: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.bool_]:
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
