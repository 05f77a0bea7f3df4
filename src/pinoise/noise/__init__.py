"""p_ψ(ε|x): distributions, generators, objectives and the PiNoise module; views and losses do not belong here."""

from pinoise.noise.distributions import Distribution, gaussian, uniform
from pinoise.noise.generators import (
    GENERATORS,
    ConstantGenerator,
    MLPGenerator,
    SharedGenerator,
    build_generator,
)
from pinoise.noise.module import Mean, PiNoise
from pinoise.noise.objectives import OBJECTIVES, Fixed, Objective, Paper
from pinoise.noise.penalty import inverse_norm
from pinoise.noise.positive import Positive

__all__ = [
    "GENERATORS",
    "OBJECTIVES",
    "ConstantGenerator",
    "Distribution",
    "Fixed",
    "MLPGenerator",
    "Mean",
    "Objective",
    "Paper",
    "PiNoise",
    "Positive",
    "SharedGenerator",
    "build_generator",
    "gaussian",
    "inverse_norm",
    "uniform",
]
