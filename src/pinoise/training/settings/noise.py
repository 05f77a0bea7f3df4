"""Sections for p_ψ(ε|x) and what it optimises."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pinoise.noise.distributions import Distribution
from pinoise.noise.module import SMALLEST_SCALE, Mean
from pinoise.noise.scale_maps import Positive as ScaleMap
from pinoise.training.settings.base import NonNegative, Positive, Section, Size, named

IMAGE_GENERATORS = ("resnet18", "resnet50", "unet")


class NoiseSettings(Section):
    """p_ψ(ε|x); what is ``auto`` or None follows from the objective, see ``noise_defaults``.

    Generator ``module`` is the user's own: ``factory`` is ``package.module:function``, called with the shape of a
    sample and the number of outputs, and returns a module from (m, *shape) to (m, outputs, *shape).
    """

    generator: Literal["auto", "global", "mlp", "shared", "resnet18", "resnet50", "unet", "module"] = "auto"
    distribution: Distribution = "gaussian"
    mean: Mean = "zero"
    positive: ScaleMap | Literal["auto"] = "auto"
    initial_scale: Annotated[float, Field(ge=SMALLEST_SCALE, allow_inf_nan=False)] | None = None
    normalize: Positive | None = None
    hidden: Size = 1024
    factory: str | None = None  # of generator ``module``
    width: Size | None = None  # of the generators resnet18 and resnet50 (if None, 64) and unet (32)


class SupportedSettings(Section):
    """Data-supported π-noise: along the data, of fixed entropy, near the prior.

    ``neighbours`` is k, 0 for noise that does not move along the data; ``weight`` is λ, 0 for no prior.
    """

    name: Literal["supported"] = "supported"
    weight: NonNegative = 0.3
    neighbours: Annotated[int, Field(ge=0, le=1000)] = 10


class PaperSettings(Section):
    """The paper's objective; ``penalty`` is λ."""

    name: Literal["paper"] = "paper"
    penalty: NonNegative = 0.0


class FixedSettings(Section):
    """Noise that keeps its initial scale."""

    name: Literal["fixed"] = "fixed"


class AdversarialSettings(Section):
    """Noise of fixed entropy that makes the loss as large as it can."""

    name: Literal["adversarial"] = "adversarial"


class InformationSettings(Section):
    """Noise with the most information about the task, measured over ``draws`` draws."""

    name: Literal["information"] = "information"
    draws: Annotated[int, Field(ge=2, le=64)] = 4


ObjectiveSettings = Annotated[
    SupportedSettings | PaperSettings | FixedSettings | AdversarialSettings | InformationSettings,
    Field(discriminator="name"),
    named("supported"),
]
