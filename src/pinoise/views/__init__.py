"""𝒜: augmentations, which make another view of a sample, and the pairing of views. Losses do not belong here."""

from pinoise.views.background import BackgroundNoise, ImageBytes, read_masks
from pinoise.views.base import Batch, Identity, Pairing, PiNoiseView, Site, View
from pinoise.views.function import FunctionView
from pinoise.views.images import IMAGE_PRESETS, ImagePipeline, ImagePreset, LocalCrops, local_crops
from pinoise.views.mask_cache import cached_masks
from pinoise.views.mixing import Mixup, Modals
from pinoise.views.noise import GaussianNoise, Viewmaker
from pinoise.views.segment import SAM_MODELS, SamSize, background_masks, load_sam
from pinoise.views.swap import Neighbour, ScarfSwap, VimeSwap
