"""ℓ(x; θ): one file per contrastive method, its equation a pure per-sample function. Views do not belong here."""

from pinoise.methods.base import Method
from pinoise.methods.byol import BYOL, byol_loss
from pinoise.methods.clae import CLAE
from pinoise.methods.dino import DINO, dino_loss
from pinoise.methods.memorybank import MemoryBank
from pinoise.methods.moco import MoCo
from pinoise.methods.momentum import Momentum, cosine_momentum, ema_update
from pinoise.methods.negatives import info_nce
from pinoise.methods.pair_loss import PairLoss
from pinoise.methods.simcl import SimCL
from pinoise.methods.simclr import SimCLR, nt_xent
from pinoise.methods.simsiam import SimSiam, negative_cosine

__all__ = [
    "BYOL",
    "CLAE",
    "DINO",
    "MemoryBank",
    "Method",
    "MoCo",
    "Momentum",
    "PairLoss",
    "SimCL",
    "SimCLR",
    "SimSiam",
    "byol_loss",
    "cosine_momentum",
    "dino_loss",
    "ema_update",
    "info_nce",
    "negative_cosine",
    "nt_xent",
]
