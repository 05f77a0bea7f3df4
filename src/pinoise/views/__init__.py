"""𝒜: what is done to a sample to get another view of it, and how views are paired. Losses do not belong here."""

from pinoise.views.background import BackgroundNoise, read_masks
from pinoise.views.base import Batch, Identity, View
from pinoise.views.images import IMAGE_PRESETS, ImagePipeline, ImagePreset, LocalCrops
from pinoise.views.mask_cache import cached_masks
from pinoise.views.mixing import (
    BatchGaussian,
    Difference,
    Extrapolation,
    Interpolation,
    Mixup,
    ModalsRatios,
    modals,
)
from pinoise.views.neighbour import Neighbour
from pinoise.views.noise import GaussianNoise, PiNoiseView
from pinoise.views.pairing import PAIRINGS, Pairing, PairingName
from pinoise.views.segment import SAM_MODELS, SamSize, background_masks, load_sam
from pinoise.views.swap import ScarfSwap, VimeSwap
from pinoise.views.viewmaker import Viewmaker

__all__ = [
    "IMAGE_PRESETS",
    "PAIRINGS",
    "SAM_MODELS",
    "BackgroundNoise",
    "Batch",
    "BatchGaussian",
    "Difference",
    "Extrapolation",
    "GaussianNoise",
    "Identity",
    "ImagePipeline",
    "ImagePreset",
    "Interpolation",
    "LocalCrops",
    "Mixup",
    "ModalsRatios",
    "Neighbour",
    "Pairing",
    "PairingName",
    "PiNoiseView",
    "SamSize",
    "ScarfSwap",
    "View",
    "Viewmaker",
    "VimeSwap",
    "background_masks",
    "cached_masks",
    "load_sam",
    "modals",
    "read_masks",
]
