"""Background masks on disk: computed once for the same images, weights and model."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pinoise.data.disk import kept, place_of
from pinoise.errors import UserError
from pinoise.files import sha256_of
from pinoise.views.segment import (
    BATCH,
    DEFAULT_SAM,
    SamSize,
    TellDone,
    background_masks,
    check_images,
    find_sam,
    load_sam,
)

VERSION = 1  # to be raised whenever other masks are found in the same images

_BLOCK = 256  # images whose masks are kept together, and are lost at most when the work is interrupted


def cached_masks(
    images: npt.NDArray[np.uint8],
    weights: Path,
    *,
    folder: Path | None = None,
    model: str | SamSize = DEFAULT_SAM,
    device: torch.device | str = "cpu",
    batch: int = BATCH,
    progress: TellDone | None = None,
) -> npt.NDArray[np.bool_]:
    """Return ``background_masks``, from a folder as far as it holds those of the same images, weights and model.

    Interrupted work continues after the last finished block of images, and several processes share the blocks.

    Args:
        images: (n, h, w) or (n, h, w, c) with 1 or 3 channels.
        weights: the file of SAM's weights.
        folder: where masks are kept; made if it does not exist, and the cache's if None.
        model: which SAM the weights are of.
        device: what computes the masks.
        batch: images at a time.
        progress: called after every batch.
    """
    check_images(images)
    about = (_weights_checksum(weights), find_sam(model))
    sam = cache(lambda: load_sam(weights, model=model).to(device))

    def masks_of(block: npt.NDArray[np.uint8], start: int) -> npt.NDArray[np.bool_]:
        def tell(done: int, _: int) -> None:
            if progress is not None:
                progress(start + done, len(images))

        def make(place: Path) -> dict[str, Any]:
            np.save(place / "masks.npy", background_masks(block, sam(), batch=batch, progress=tell))
            return {}

        content = hashlib.sha256(np.ascontiguousarray(block).data).hexdigest()
        stored = kept(place_of("masks", "masks", *about, block.shape, content, folder=folder), VERSION, make)
        tell(len(block), len(images))
        masks: npt.NDArray[np.bool_] = np.load(stored.folder / "masks.npy")
        return masks

    return np.concatenate([masks_of(images[at : at + _BLOCK], at) for at in range(0, len(images), _BLOCK)])


def _weights_checksum(path: Path) -> str:
    try:
        return sha256_of(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: give the file of SAM's weights.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read as SAM's weights ({error.strerror or error}).") from None
