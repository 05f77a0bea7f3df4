"""Masks of a Segment-Anything model with random weights, for machines that have no weights of a trained one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from pinoise.data.dataset import Part, fingerprint
from pinoise.data.disk import kept, place_of
from pinoise.modes import Randomness
from pinoise.paper.sam import SamSize, background_masks, build_sam

# The sizes of a model that takes a moment.
TINY_SAM = SamSize(
    width=16,
    depth=2,
    heads=2,
    global_blocks=(1,),
    image_size=32,
    patch=8,
    window=2,
    channels=16,
    decoder_heads=2,
    decoder_hidden=32,
)
# With this seed, and this much added to the weights, about two thirds of an image of CIFAR-10 are background, and masks
# differ between images. Many others see background everywhere.
_SEED, _SPREAD = 2, 0.1


def random_masks(part: Part) -> Path:
    """Return a file with a mask for every image of a part's source; those of images outside the part are empty."""
    total, rows = (
        (len(part), np.arange(len(part))) if part.origin is None else (part.origin.total, np.asarray(part.origin.rows))
    )

    def make(folder: Path) -> dict[str, Any]:
        with Randomness(_SEED).lent(), torch.no_grad():
            model = build_sam(TINY_SAM).eval().requires_grad_(False)
            for weight in model.parameters():
                weight.add_(_SPREAD * torch.randn_like(weight))
        found = background_masks(np.asarray(part.x), model)
        masks = np.zeros((total, *found.shape[1:]), dtype=np.bool_)
        masks[rows] = found
        np.save(folder / "masks.npy", masks)
        return {}

    place = place_of("masks", "random", fingerprint(part.x), total, fingerprint(rows))
    return kept(place, _SEED, make).folder / "masks.npy"
