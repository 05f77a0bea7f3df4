"""p_ψ(ε|x): distributions, generators, objectives and the PiNoise module; views and losses do not belong here."""

from pinoise.noise.distributions import Distribution, gaussian, uniform
from pinoise.noise.generators import (
    GENERATORS,
    ConstantGenerator,
    GlobalGenerator,
    MLPGenerator,
    SharedGenerator,
    build_generator,
)
from pinoise.noise.image_generators import ResNetGenerator, SharedMapGenerator, UNetGenerator
from pinoise.noise.module import Mean, Noise, PiNoise
from pinoise.noise.objectives import Adversarial, Fixed, Information, Look, Objective, Outcome, Paper, Supported
from pinoise.noise.penalty import inverse_norm, mean_log_ratio_squared
from pinoise.noise.prior import neighbour_spread, prior_scale
from pinoise.noise.scale_maps import Positive
from pinoise.noise.search import nearest
from pinoise.noise.support import Support

__all__ = [
    "GENERATORS",
    "Adversarial",
    "ConstantGenerator",
    "Distribution",
    "Fixed",
    "GlobalGenerator",
    "Information",
    "Look",
    "MLPGenerator",
    "Mean",
    "Noise",
    "Objective",
    "Outcome",
    "Paper",
    "PiNoise",
    "Positive",
    "ResNetGenerator",
    "SharedGenerator",
    "SharedMapGenerator",
    "Support",
    "Supported",
    "UNetGenerator",
    "build_generator",
    "gaussian",
    "inverse_norm",
    "mean_log_ratio_squared",
    "nearest",
    "neighbour_spread",
    "prior_scale",
    "uniform",
]
