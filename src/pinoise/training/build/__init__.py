"""Build modules from settings and the shape of the data. Training does not belong here."""

from pinoise.training.build.embedding import build_embedding, embedding_tensors, restore_embedding
from pinoise.training.build.model import TrainingImages, build_model, build_standardizer, make_site, seeded_model
from pinoise.training.build.networks import build_encoder, channels_together, check_size
from pinoise.training.build.noise import build_noise, columns_of, feature_scale, restore_noise, support_neighbours
from pinoise.training.build.parts import check_options
from pinoise.training.build.views import build_pairing, build_views
