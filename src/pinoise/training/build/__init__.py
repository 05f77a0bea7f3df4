"""From settings and the shape of the data to modules; how these are trained does not belong here."""

from pinoise.training.build.background import prepare_masks
from pinoise.training.build.model import build_model
from pinoise.training.build.networks import (
    build_embedding,
    build_encoder,
    build_standardizer,
    channels_together,
    feature_scale,
)
from pinoise.training.build.noise import SUPPORT_ROWS, TABLE_ROWS, build_noise, build_support, restore_noise
from pinoise.training.build.views import build_view

__all__ = [
    "SUPPORT_ROWS",
    "TABLE_ROWS",
    "build_embedding",
    "build_encoder",
    "build_model",
    "build_noise",
    "build_standardizer",
    "build_support",
    "build_view",
    "channels_together",
    "feature_scale",
    "prepare_masks",
    "restore_noise",
]
