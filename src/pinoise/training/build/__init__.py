"""Build modules from settings and the shape of the data. Training does not belong here."""

from pinoise.training.build.model import (
    build_embedding,
    build_model,
    build_standardizer,
    make_site,
    restore_embedding,
    seeded_model,
)
from pinoise.training.build.parts import (
    build_encoder,
    build_noise,
    build_pairing,
    build_view,
    channels_together,
    check_options,
    check_size,
    columns_of,
    feature_scale,
    restore_noise,
)
