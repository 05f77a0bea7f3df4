"""𝒜: what is done to a sample to get another view of it, and how views are paired. Losses do not belong here."""

from pinoise.views.base import Batch, Identity, View
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
from pinoise.views.swap import ScarfSwap, VimeSwap
from pinoise.views.viewmaker import Viewmaker

__all__ = [
    "PAIRINGS",
    "Batch",
    "BatchGaussian",
    "Difference",
    "Extrapolation",
    "GaussianNoise",
    "Identity",
    "Interpolation",
    "Mixup",
    "ModalsRatios",
    "Neighbour",
    "Pairing",
    "PairingName",
    "PiNoiseView",
    "ScarfSwap",
    "View",
    "Viewmaker",
    "VimeSwap",
    "modals",
]
