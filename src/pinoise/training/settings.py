"""The configuration of a run, parsed once at the edge into typed objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pinoise.data.standardizer import Scaling
from pinoise.networks.embedding import EmbeddingName
from pinoise.noise.distributions import Distribution
from pinoise.noise.module import SMALLEST_SCALE, Mean
from pinoise.noise.scale_maps import Positive
from pinoise.views.pairing import PairingName

Size = Annotated[int, Field(ge=1, le=65_536)]
Positive_ = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A part of the configuration: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _named(default: str | None = None) -> BeforeValidator:
    """A section given as a plain name means that name with its defaults; one without a name means the default name."""

    def complete(value: object) -> object:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, Mapping) and default is not None:
            return {"name": default, **value}
        return value

    return BeforeValidator(complete)


class MLPSettings(Section):
    """The paper's encoder for vectors, d→hidden→hidden→out_features."""

    name: Literal["mlp"] = "mlp"
    hidden: Size = 1024
    out_features: Size = 256


class HeadSettings(Section):
    """The projection head."""

    hidden: Size = 256
    out_features: Size = 128


class SimCLRSettings(Section):
    """SimCLR."""

    name: Literal["simclr"] = "simclr"
    temperature: Positive_ = 0.5


class SimCLSettings(Section):
    """SimCL; ``strength`` is c."""

    name: Literal["simcl"] = "simcl"
    temperature: Positive_ = 0.5
    strength: Positive_ = 0.2


class CLAESettings(Section):
    """CLAE; ``strength`` is e in standard deviations, ``weight`` is α."""

    name: Literal["clae"] = "clae"
    temperature: Positive_ = 0.5
    strength: Positive_ = 0.5
    weight: NonNegative = 1.0


class NoiseSettings(Section):
    """p_ψ(ε|x); what is ``auto`` or None follows from the objective, see ``noise_defaults``."""

    generator: Literal["auto", "global", "mlp", "shared"] = "auto"
    distribution: Distribution = "gaussian"
    mean: Mean = "zero"
    positive: Positive | Literal["auto"] = "auto"
    initial_scale: Annotated[float, Field(ge=SMALLEST_SCALE, allow_inf_nan=False)] | None = None
    normalize: Positive_ | None = None
    hidden: Size = 1024


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


class GaussianSettings(Section):
    """Gaussian noise; ``sigma`` in standard deviations."""

    name: Literal["gaussian"] = "gaussian"
    sigma: Positive_ = 1.0


class ScarfSettings(Section):
    """SCARF's replacement from empirical marginals."""

    name: Literal["scarf"] = "scarf"
    rate: Share = 0.6


class VimeSettings(Section):
    """VIME's column swap."""

    name: Literal["vime"] = "vime"
    rate: Share = 0.3


class DACLSettings(Section):
    """DACL's mixup, λ ~ U(alpha, 1)."""

    name: Literal["dacl"] = "dacl"
    alpha: Share = 0.9


class NeighbourSettings(Section):
    """One of the ``k`` nearest neighbours in the data."""

    name: Literal["neighbours"] = "neighbours"
    k: Annotated[int, Field(ge=1, le=1000)] = 10


class ViewmakerSettings(Section):
    """Viewmaker's network, as wide as ``noise.hidden``; ``budget`` is the mean size of what it adds, in deviations."""

    name: Literal["viewmaker"] = "viewmaker"
    budget: Positive_ = 0.05


class ModalsSettings(Section):
    """MODALS' four transforms and how far each goes."""

    name: Literal["modals"] = "modals"
    interpolation: NonNegative = 0.1
    extrapolation: NonNegative = 0.1
    gaussian: NonNegative = 0.1
    difference: NonNegative = 0.1


class IdentitySettings(Section):
    """The sample itself."""

    name: Literal["identity"] = "identity"


class PiSettings(Section):
    """The learned noise that the sections ``noise`` and ``objective`` describe."""

    name: Literal["pi"] = "pi"


class NoNoiseSettings(Section):
    """No noise: predefined augmentations alone, or the method's own."""

    name: Literal["none"] = "none"


EncoderSettings = Annotated[MLPSettings, _named("mlp")]
MethodSettings = Annotated[SimCLRSettings | SimCLSettings | CLAESettings, Field(discriminator="name"), _named("simclr")]
ObjectiveSettings = Annotated[
    SupportedSettings | PaperSettings | FixedSettings | AdversarialSettings | InformationSettings,
    Field(discriminator="name"),
    _named("supported"),
]
AugmentationSettings = Annotated[
    IdentitySettings
    | GaussianSettings
    | ScarfSettings
    | VimeSettings
    | DACLSettings
    | ModalsSettings
    | NeighbourSettings,
    Field(discriminator="name"),
    _named(),
]
NoiseViewSettings = Annotated[
    PiSettings
    | NoNoiseSettings
    | GaussianSettings
    | ScarfSettings
    | VimeSettings
    | DACLSettings
    | NeighbourSettings
    | ViewmakerSettings,
    Field(discriminator="name"),
    _named("pi"),
]


class ViewSettings(Section):
    """Which views are compared.

    Pairing ``auto`` is ``sampled`` with augmentations; with noise alone ``noise-noise`` for objective ``supported`` and
    ``identity-noise`` for others; ``identity`` with neither.
    """

    pairing: PairingName | Literal["auto"] = "auto"
    noise: NoiseViewSettings = PiSettings()
    augmentations: tuple[AugmentationSettings, ...] = ()


class DataSettings(Section):
    """Where the samples come from."""

    source: str = "digits"
    label: str | None = None
    rows: Annotated[int, Field(ge=2)] | None = None
    missing: Literal["median", "mean", "zero", "error"] = "median"
    categorical: tuple[str, ...] = ()  # columns of numbers that stand for categories
    drop: tuple[str, ...] = ()  # columns to leave out
    scaling: Scaling = "auto"


class TrainingSettings(Section):
    """How long and on what to train."""

    epochs: Annotated[int, Field(ge=1)] = 100
    batch_size: Annotated[int, Field(ge=2)] = 256
    learning_rate: Positive_ = 1e-3
    noise_learning_rate: Positive_ | None = None  # ψ's own; if None, θ's, or ten times it for a ``global`` generator
    information_draws: Annotated[int, Field(ge=0, le=1000)] = 8  # of noise, to measure its information; 0 for never
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    device: str = "auto"
    devices: Annotated[int, Field(ge=1)] = 1
    nodes: Annotated[int, Field(ge=1)] = 1
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = "32-true"
    checkpoint_every: Annotated[int, Field(ge=1)] = 500  # steps


class Settings(Section):
    """The whole configuration of a run: what ``config.yaml`` holds and ``--set section.key=value`` reaches.

    >>> Settings.model_validate({"method": "clae"}).method.weight
    1.0
    """

    data: DataSettings = DataSettings()
    encoder: EncoderSettings = MLPSettings()
    head: HeadSettings = HeadSettings()
    embedding: EmbeddingName = "joined"
    method: MethodSettings = SimCLRSettings()
    noise: NoiseSettings = NoiseSettings()
    objective: ObjectiveSettings = SupportedSettings()
    views: ViewSettings = ViewSettings()
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse sections that contradict each other, rather than let one of them win in silence."""
        if isinstance(self.objective, FixedSettings) and self.noise.mean == "learned":
            raise ValueError("the mean of the noise is to be learned and objective 'fixed' learns none: change either")
        if isinstance(self.views.noise, ViewmakerSettings) and not isinstance(self.objective, AdversarialSettings):
            raise ValueError(
                "views.noise 'viewmaker' learns against the encoder: choose objective 'adversarial' with it"
            )
        if self.training.information_draws == 1:
            raise ValueError("training.information_draws is 1: information needs 2 draws or more, 0 measures none")
        return self


class NoiseDefaults(NamedTuple):
    """What an objective asks of the noise where the configuration leaves it open."""

    generator: str
    positive: Positive


def noise_defaults(settings: Settings) -> NoiseDefaults:
    """Return generator and map of the noise, as configured or as the objective has them.

    >>> noise_defaults(Settings())
    NoiseDefaults(generator='global', positive='fixed-entropy')
    """
    noise, objective = settings.noise, settings.objective
    generator = noise.generator if noise.generator != "auto" else "global" if _is_supported(objective) else "mlp"
    bounded = _is_supported(objective) or isinstance(objective, AdversarialSettings)
    positive = noise.positive if noise.positive != "auto" else "fixed-entropy" if bounded else "softplus"
    return NoiseDefaults("constant" if isinstance(objective, FixedSettings) else generator, positive)


def _is_supported(objective: Section) -> bool:
    return isinstance(objective, SupportedSettings)


def names_in(union: Any) -> tuple[str, ...]:
    """Return the names that a choice of sections knows.

    >>> names_in(MethodSettings)
    ('simclr', 'simcl', 'clae')
    """
    return tuple(section.model_fields["name"].default for section in get_args(get_args(union)[0]))
