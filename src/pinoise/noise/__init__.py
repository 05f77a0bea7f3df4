"""p_ψ(ε|x): distributions, generators and the PiNoise module. Views, losses and objectives do not belong here."""

from pinoise.noise.distributions import gaussian, uniform
from pinoise.noise.generators import (
    PRIOR_WEIGHT,
    ConstantGenerator,
    GlobalGenerator,
    MLPGenerator,
    SharedGenerator,
    inverse_norm,
    make_generator,
    mean_log_ratio_squared,
    prior_scale,
)
from pinoise.noise.image_generators import ResNetGenerator, SharedMapGenerator, UNetGenerator
from pinoise.noise.module import Noise, PiNoise
from pinoise.noise.rows import Columns, Span, nearest, neighbour_spread
from pinoise.noise.support import NEIGHBOURS, SUPPORT_ROWS, NeighbourCount, Support, TrainingRows, draw_bank
