"""p_ψ(ε|x): distributions, generators and the PiNoise module. Views, losses and objectives do not belong here."""

from pinoise.noise.columns import Columns, Span
from pinoise.noise.distributions import gaussian, uniform
from pinoise.noise.generators import (
    ConstantGenerator,
    GlobalGenerator,
    MLPGenerator,
    SharedGenerator,
    make_generator,
)
from pinoise.noise.image_generators import ResNetGenerator, SharedMapGenerator, UNetGenerator
from pinoise.noise.module import Noise, PiNoise
from pinoise.noise.prior import PRIOR_WEIGHT, inverse_norm, mean_log_ratio_squared, neighbour_spread, prior_scale
from pinoise.noise.search import nearest
from pinoise.noise.support import NEIGHBOURS, SUPPORT_ROWS, NeighbourCount, Support, TrainingRows, draw_bank
