"""ℓ(x; θ): one file per contrastive method, its equation a pure per-sample function. Views do not belong here."""

from pinoise.methods.base import Method
from pinoise.methods.clae import CLAE
from pinoise.methods.simcl import SimCL
from pinoise.methods.simclr import SimCLR, nt_xent

__all__ = ["CLAE", "Method", "SimCL", "SimCLR", "nt_xent"]
