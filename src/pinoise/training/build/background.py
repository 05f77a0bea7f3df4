"""Where the background of training images is: a file of the user's says it, or a Segment-Anything model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from pinoise.data.layout import AS_IS
from pinoise.data.rows import LazyRows, Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.files import cache_folder
from pinoise.training.settings import BackgroundSettings, Settings
from pinoise.views import cached_masks, read_masks


class Pixels:
    """Training images as bytes with their channels last, recovered from standardised rows where they are asked for."""

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, rows: Rows, standardizer: Standardizer) -> None:
        channels, height, width = standardizer.shape
        self.shape = (len(rows), height, width, channels)
        self._rows = rows
        self._standardizer = standardizer

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, part: slice) -> npt.NDArray[np.uint8]:
        chosen = torch.arange(*part.indices(len(self._rows)))
        standard = self._rows[chosen].double().numpy()
        values = 255 * (standard * self._standardizer.scale + self._standardizer.mean) / self._standardizer.white
        return np.ascontiguousarray(np.moveaxis(values.round().clip(0, 255).astype(np.uint8), 1, -1))


def masks_of(
    item: BackgroundSettings,
    standardizer: Standardizer,
    rows: Rows,
    *,
    device: str = "auto",
    progress: bool = False,
) -> npt.NDArray[np.bool_]:
    """Return which pixels are background, (n, H, W); those that a model finds are kept in the cache.

    A file of masks has one for each image of the source, whichever of them are trained on.

    Args:
        item: says where masks or the weights of a model are.
        standardizer: of the images.
        rows: the training images, standardised, which know which of their source's they are.
        device: what the model runs on; ``auto`` is a GPU if there is one.
        progress: whether a bar shows how far the model is.
    """
    if standardizer.layout == AS_IS:
        raise UserError(f"the view 'background' is for images: samples of shape {standardizer.shape} have none.")
    if (item.masks is None) == (item.weights is None):
        both = "neither masks nor weights" if item.masks is None else "masks and weights"
        raise UserError(
            f"the view 'background' was given {both}: name a file of masks, or one with the weights of a "
            "Segment-Anything model."
        )
    if item.masks is not None:
        _, height, width = standardizer.shape
        origin = rows.origin if isinstance(rows, LazyRows) else None
        if origin is None:
            return read_masks(item.masks, rows=len(rows), size=(height, width))
        return read_masks(item.masks, rows=origin.total, size=(height, width), chosen=origin.rows)
    where = "cuda" if device in ("auto", "cuda") and torch.cuda.is_available() else "cpu"
    images = Pixels(rows, standardizer)
    return _segmented(item.weights or Path(), images, model=item.model, device=where, progress=progress)


def prepare_masks(settings: Settings, standardizer: Standardizer, rows: Rows, *, progress: bool = False) -> None:
    """Compute masks that are not in the cache yet, so that of several processes one alone does it."""
    for item in (settings.views.noise, *settings.views.augmentations):
        if isinstance(item, BackgroundSettings):
            masks_of(item, standardizer, rows, device=settings.training.device, progress=progress)


def _segmented(weights: Path, images: Pixels, *, model: str, device: str, progress: bool) -> npt.NDArray[np.bool_]:
    with tqdm(total=len(images), desc="finding the background", disable=not progress, leave=False) as bar:

        def show(done: int, _: int) -> None:
            bar.update(done - bar.n)

        folder = cache_folder() / "masks"
        return cached_masks(images, weights, folder=folder, model=model, device=device, progress=show)  # type: ignore[arg-type]
