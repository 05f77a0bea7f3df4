"""p_ψ(ε|x): σ, the draw of ε, the move along the data, and PiNoise. Views, losses and objectives do not belong here."""

from pinoise.noise.columns import Columns, Span
from pinoise.noise.draw import Noise, gaussian, uniform
from pinoise.noise.generators import ConstantGenerator, GlobalGenerator, MLPGenerator, SharedGenerator, make_generator
from pinoise.noise.image_generators import ResNet18Generator, ResNet50Generator, SharedMapGenerator, UNetGenerator
from pinoise.noise.module import PiNoise
from pinoise.noise.rows import TrainingRows, draw_bank, nearest, neighbour_spread
from pinoise.noise.sigma import PRIOR_WEIGHT, Sigma, inverse_norm, mean_log_ratio_squared, prior_scale
from pinoise.noise.support import NEIGHBOURS, SUPPORT_ROWS, Support
