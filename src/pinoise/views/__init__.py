"""𝒜: augmentations, which make another view of a sample, and the pairing of views. Losses do not belong here."""

from pinoise.views.base import Batch, Identity, Pairing, PiNoiseView, Site, View
from pinoise.views.function import FunctionView
from pinoise.views.images import IMAGE_PRESETS, ImagePipeline, ImagePreset, local_crops
from pinoise.views.noise import GaussianNoise, Viewmaker
from pinoise.views.swap import Mixup, Neighbour, ScarfSwap, VimeSwap
