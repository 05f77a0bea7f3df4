"""f_θ: encoders, heads and embeddings. Any module with an integer ``out_features`` can stand in for an encoder."""

from pinoise.networks.embedding import EMBEDDINGS, Embedding, EmbeddingName, join
from pinoise.networks.mlp import MLPEncoder, ProjectionHead

ENCODERS = ("mlp",)

__all__ = ["EMBEDDINGS", "ENCODERS", "Embedding", "EmbeddingName", "MLPEncoder", "ProjectionHead", "join"]
