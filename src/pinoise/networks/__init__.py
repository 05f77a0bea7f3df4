"""f_θ: encoders and heads. Any module with an integer ``out_features`` can stand in for an encoder."""

from pinoise.networks.mlp import MLPEncoder, ProjectionHead

ENCODERS = ("mlp",)

__all__ = ["ENCODERS", "MLPEncoder", "ProjectionHead"]
