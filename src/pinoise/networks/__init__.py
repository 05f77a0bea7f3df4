"""f_θ: encoders, heads and embeddings. Any module with an integer ``out_features`` can serve as an encoder."""

from pinoise.modes import evaluating, has_batch_norm
from pinoise.networks.embedding import Blocks, Embedding, Raw
from pinoise.networks.mlp import (
    PROTOTYPES,
    BatchNormHead,
    MLPEncoder,
    PredictionHead,
    ProjectionHead,
    PrototypeHead,
    SimSiamHead,
)
from pinoise.networks.resnet import ResNet, ResNet18, ResNet50
from pinoise.networks.unet import UNet
from pinoise.networks.vit import ViT
from pinoise.networks.weights import (
    check_finite_weights,
    digest,
    load_weights,
    read_stored,
    read_tensors,
    read_weights,
    write_tensors,
)
