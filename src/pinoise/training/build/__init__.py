"""Build modules from settings and the shape of the data. Training does not belong here."""

from pinoise.training.build.model import build_embedding, build_model, build_standardizer, make_site, seeded_model
from pinoise.training.build.parts import build_encoder, build_view, channels_together, check_options, feature_scale
