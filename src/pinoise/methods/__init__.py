"""ℓ(x; θ): one file per contrastive method, its equation a pure per-sample function. Views do not belong here."""

from pinoise.methods.base import Method
from pinoise.methods.byol import BYOL, byol_loss
from pinoise.methods.clae import CLAE
from pinoise.methods.dino import DINO, dino_loss
from pinoise.methods.moco import MoCo, info_nce
from pinoise.methods.momentum import Momentum, cosine_momentum, ema_update
from pinoise.methods.simcl import SimCL
from pinoise.methods.simclr import PairLoss, SimCLR, nt_xent
from pinoise.methods.simsiam import SimSiam, negative_cosine
