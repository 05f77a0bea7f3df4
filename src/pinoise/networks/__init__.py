"""f_θ: encoders, heads and embeddings. Any module with an integer ``out_features`` can stand in for an encoder."""

from pinoise.networks.blocks import evaluating, has_batch_norm, settle_statistics
from pinoise.networks.cost import Operations, count_operations
from pinoise.networks.embedding import EMBEDDINGS, Embedding, EmbeddingName, join
from pinoise.networks.heads import BatchNormHead, PredictionHead, PrototypeHead, SimSiamHead
from pinoise.networks.mlp import MLPEncoder, ProjectionHead
from pinoise.networks.resnet import ResNet
from pinoise.networks.unet import UNet
from pinoise.networks.vit import ViT
from pinoise.networks.weights import read_weights

ENCODERS = ("mlp", "resnet18", "resnet50", "vit")

__all__ = [
    "EMBEDDINGS",
    "ENCODERS",
    "BatchNormHead",
    "Embedding",
    "EmbeddingName",
    "MLPEncoder",
    "Operations",
    "PredictionHead",
    "ProjectionHead",
    "PrototypeHead",
    "ResNet",
    "SimSiamHead",
    "UNet",
    "ViT",
    "count_operations",
    "evaluating",
    "has_batch_norm",
    "join",
    "read_weights",
    "settle_statistics",
]
