"""The sections of a configuration, and the choices that follow from them if they are left open."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

from annotated_types import Ge, Interval
from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, SkipValidation, model_validator
from pydantic_core import CoreSchema

from pinoise.choices import (
    BATCH_SIZE,
    DISTRIBUTION,
    ENCODER,
    EPOCHS,
    GENERATOR,
    LEARNING_RATE,
    MEAN,
    METHOD,
    MOST_DRAWS,
    MOST_PROCESSES,
    NOISE_VIEW,
    OBJECTIVE,
    VIEW,
    Covariance,
    Distribution,
    EmbeddingName,
    Entries,
    FromProcesses,
    Kind,
    Mean,
    NonNegative,
    PairingName,
    Positive,
    ScaleMap,
    Seed,
    Size,
    StrategyName,
    Times,
    options_of,
)
from pinoise.data.options import ImageSize, ReadOptions
from pinoise.data.standardizer import SCALING, Scaling
from pinoise.errors import UserError
from pinoise.networks.mlp import HEAD_HIDDEN, PROJECTION
from pinoise.noise.module import COVARIANCE, SMALLEST_SCALE
from pinoise.training.config.section import Choice, Chosen, Section, read_choice, split_at_commas, with_exact_numbers
from pinoise.training.objectives import Objective
from pinoise.training.processes import SIGNS

VECTOR_ENCODER, IMAGE_ENCODER = "mlp", "resnet18"  # what ``auto`` means


def _default(kind: Kind) -> Any:
    return Field(default=kind.default, validate_default=True)


def _sides(value: Any) -> Any:
    """Return height and width that are written as 32,48. The check of ``ReadOptions`` says more than pydantic's."""
    sides = split_at_commas(value)
    are_written = isinstance(value, str) and len(sides) == 2 and all(side.isdecimal() for side in sides)
    return [int(side) for side in sides] if are_written else value


@dataclass(frozen=True, kw_only=True)
class DataSettings(ReadOptions):
    """The source of the samples, and how they are read and scaled.

    The ``target`` is a column of a table that a classifier predicts. Its cells may be empty, and it is no feature.
    """

    source: Annotated[str, Field(min_length=1)] = "digits"
    target: str | None = None
    scaling: Scaling = SCALING
    rows: Times | None = ReadOptions.rows
    max_categories: Size = ReadOptions.max_categories
    size: Annotated[ImageSize | None, SkipValidation, BeforeValidator(_sides)] = ReadOptions.size

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is None:
            return
        if self.label is not None:
            raise UserError(
                f"target is {self.target!r} and data.label is {self.label!r}: leave out the label; the cells of the "
                "target may be empty."
            )
        if self.target not in self.drop:
            object.__setattr__(self, "drop", (*self.drop, self.target))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that reads the section, exact about numbers."""
        schema: CoreSchema = with_exact_numbers(handler(source))
        return schema


class HeadSettings(Section):
    """The projection head."""

    hidden: Size = HEAD_HIDDEN
    out_features: Size = PROJECTION


class NoiseSettings(Section):
    """p_ψ(ε|x). The objective decides ``auto`` and a covariance of None.

    ``initial_scale`` None is ``amplitude`` times the spread of neighbours, or 1 for noise that has no neighbours.
    """

    generator: Annotated[Choice, Chosen(GENERATOR)] = _default(GENERATOR)
    distribution: Distribution = DISTRIBUTION
    mean: Mean = MEAN
    positive: Literal[ScaleMap, "auto"] = "auto"
    covariance: Covariance | None = None
    amplitude: Positive | None = None
    initial_scale: Annotated[float, Field(ge=SMALLEST_SCALE)] | None = None
    normalize: Positive | None = None


class ViewSettings(Section):
    """Which views are compared.

    Pairing ``auto`` is ``sampled`` with augmentations, the objective's pairing with noise alone, and ``identity`` with
    neither.
    """

    pairing: Literal[PairingName, "auto"] = "auto"
    noise: Annotated[Choice, Chosen(NOISE_VIEW)] = _default(NOISE_VIEW)
    augmentations: tuple[Annotated[Choice, Chosen(VIEW)], ...] = ()
    local_crops: Annotated[int, Field(ge=0, le=32)] = 0  # the number of small crops besides the two views, for DINO


class TrainingSettings(Section):
    """The length of training, its optimiser, and the device."""

    epochs: Times = EPOCHS
    batch_size: Annotated[Entries, Ge(2)] = BATCH_SIZE  # rows in a step, which processes that train together share
    learning_rate: Positive = LEARNING_RATE
    noise_learning_rate: Positive | None = None  # of ψ; None follows θ's by ``PiNoise.param_groups``
    information_draws: Annotated[int, Interval(ge=0, le=MOST_DRAWS)] = (
        8  # of noise, to measure its information; 0 measures none
    )
    seed: Seed = 0
    device: str = "auto"
    devices: Annotated[int, Interval(ge=1, le=MOST_PROCESSES)] = 1
    nodes: Annotated[int, Interval(ge=1, le=MOST_PROCESSES)] = 1
    wait: Annotated[int, Interval(ge=1, le=86_400)] = 600  # seconds that processes wait for one another to start
    strategy: StrategyName = "ddp"
    statistics_from: FromProcesses = "all-processes"  # of batch normalisation
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = "32-true"
    checkpoint_every: Times = 500  # steps between checkpoints
    patience: Times | None = None  # epochs in which the loss of held-out rows may not fall; None never stops early
    min_improvement: NonNegative = 1e-3  # a smaller fall of that loss, in its own units, does not count

    @property
    def is_alone(self) -> bool:
        """Whether this process trains alone, so that no machinery for several is needed."""
        return self.devices == self.nodes == 1 and os.environ.keys().isdisjoint(SIGNS)


class Settings(Section):
    """The whole configuration of a run, as in ``config.yaml``. ``--set section.key=value`` changes one setting.

    >>> Settings.model_validate({"method": "clae"}).method.options["weight"]
    1.0
    """

    data: DataSettings = DataSettings()
    encoder: Annotated[Choice, Chosen(ENCODER)] = _default(ENCODER)
    head: HeadSettings = HeadSettings()
    embedding: Literal[EmbeddingName, "auto"] = "auto"  # auto: joined for vectors, learned for images
    method: Annotated[Choice, Chosen(METHOD)] = _default(METHOD)
    noise: NoiseSettings = NoiseSettings()
    objective: Annotated[Choice, Chosen(OBJECTIVE)] = _default(OBJECTIVE)
    views: ViewSettings = ViewSettings()
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse sections that contradict each other. Otherwise one of them would win silently."""
        if not self.objective.trait("learns_noise", True) and self.noise.mean == "learned":
            raise ValueError(
                f"noise.mean is 'learned' but objective {self.objective.name!r} learns no noise: change one of them"
            )
        for view in (self.views.noise, *self.views.augmentations):
            if view.trait("adversarial") and not self.objective.trait("psi", 1.0) < 0:
                raise ValueError(
                    f"the view {view.name!r} learns against the encoder: choose objective 'adversarial' with it"
                )
        if self.views.local_crops and not self.method.trait("takes_local_views"):
            raise ValueError(f"views.local_crops belongs to method 'dino', not {self.method.name!r}: leave it out")
        takes_crops = self.encoder.own or self.encoder.part is None or self.encoder.trait("for_images")
        if self.views.local_crops and not takes_crops:
            raise ValueError(
                f"views.local_crops makes smaller images, but encoder {self.encoder.name!r} does not take them: "
                "choose another encoder"
            )
        if self.noise.amplitude is not None and self.noise.initial_scale is not None:
            raise ValueError("noise.amplitude and noise.initial_scale both set σ: leave one out")
        if (self.noise.covariance or "diagonal") != "diagonal" and self.noise.distribution != "gaussian":
            raise ValueError(
                f"noise.covariance {self.noise.covariance!r} belongs to distribution 'gaussian': change one of them"
            )
        if self.is_automatic:
            self._check_automatic()
        elif self.noise.amplitude is not None and not looks_at_neighbours(self):
            raise ValueError(
                "noise.amplitude is a multiple of how much neighbours differ, and this noise has none: leave it out, "
                "or choose another objective, covariance or number of neighbours"
            )
        if self.training.information_draws == 1:
            raise ValueError("training.information_draws is 1: give at least 2, or 0 to measure no information")
        return self

    def _check_automatic(self) -> None:
        """Refuse settings that leave nothing to choose."""
        if "neighbours" not in self.objective.options:
            raise ValueError(
                "views.noise 'auto' chooses among kinds of noise along the data, which objective "
                f"{self.objective.name!r} does not have: choose objective 'supported'"
            )
        if not self.neighbours:
            raise ValueError(
                "objective.neighbours is 0, and views.noise 'auto' chooses whether samples move to neighbours: leave "
                "one out"
            )
        for name in ("covariance", "amplitude", "initial_scale"):
            if getattr(self.noise, name) is not None:
                raise ValueError(f"noise.{name} is given, and views.noise 'auto' chooses it: leave one out")
        if self.noise.distribution != "gaussian":
            raise ValueError("views.noise 'auto' is for distribution 'gaussian': change one of them")

    @property
    def parts(self) -> dict[str, Choice]:
        """Every part that was chosen, by its path."""
        found = {"encoder": self.encoder, "method": self.method, "objective": self.objective}
        found |= {"noise.generator": self.noise.generator, "views.noise": self.views.noise}
        return found | {f"views.augmentations.{i}": view for i, view in enumerate(self.views.augmentations)}

    @property
    def needs_trust(self) -> bool:
        """Whether a file of these settings is read only if the user trusts it."""
        return any(part.own for part in self.parts.values())

    @property
    def is_learned(self) -> bool:
        """Whether the noise is p_ψ(ε|x)."""
        return self.views.noise.part is None and self.views.noise.name != "none"

    @property
    def is_automatic(self) -> bool:
        """Whether trial fits choose the kind of noise."""
        return self.views.noise.part is None and self.views.noise.name == "auto"

    @property
    def neighbours(self) -> int:
        """The number of neighbours of a sample for noise along the data; 0 for noise around x."""
        return int(self.objective.options.get("neighbours") or 0)


class NoiseDefaults(NamedTuple):
    """The generator, the map and the covariance of the noise, after the objective has decided what was left open."""

    generator: Choice
    positive: ScaleMap
    covariance: Covariance


def noise_defaults(settings: Settings) -> NoiseDefaults:
    """Return the generator, the map and the covariance of the noise, as configured or as the objective decides.

    >>> generator, positive, covariance = noise_defaults(Settings())
    >>> generator.name, positive, covariance
    ('global', 'fixed-entropy', 'mixed')
    """
    objective, noise = settings.objective, settings.noise

    def decided(name: str) -> Any:
        name = f"image_{name}" if takes_images(settings) else name
        return objective.trait(name, getattr(Objective, name))

    positive = objective.trait("positive", Objective.positive) if noise.positive == "auto" else noise.positive
    covariance = noise.covariance or (decided("covariance") if noise.distribution == "gaussian" else COVARIANCE)
    generator = noise.generator
    if not objective.trait("learns_noise", True):
        generator = read_choice("constant", GENERATOR, "noise.generator")
    elif generator.part is None:
        chosen = read_choice(decided("generator"), GENERATOR, "noise.generator")
        fitting = {key: value for key, value in generator.options.items() if key in options_of(chosen.part)}
        generator = read_choice({"name": chosen.name, **fitting}, GENERATOR, "noise.generator")
    return NoiseDefaults(generator, positive, covariance)


def encoder_of(settings: Settings, *, images: bool = False) -> Choice:
    """Return the encoder: as configured, or in place of ``auto`` a ResNet18 for images and an MLP for vectors.

    >>> encoder_of(Settings()).name, encoder_of(Settings(), images=True).name
    ('mlp', 'resnet18')
    """
    choice = settings.encoder
    if choice.part is not None:
        return choice
    name = IMAGE_ENCODER if images else VECTOR_ENCODER
    try:
        return read_choice({"name": name, **choice.options}, ENCODER, "encoder")
    except UserError as error:
        kind = "images" if images else "vectors"
        raise UserError(f"encoder 'auto' is {name!r} for {kind}, and {error}") from None


def looks_at_neighbours(settings: Settings) -> bool:
    """Whether the noise needs neighbours in the data: samples move to them, or noise is correlated as they differ.

    >>> looks_at_neighbours(Settings()), looks_at_neighbours(Settings.model_validate({"objective": "paper"}))
    (True, False)
    """
    return settings.neighbours > 0 or noise_defaults(settings).covariance != "diagonal"


def takes_images(settings: Settings) -> bool:
    """Whether a part of the configuration is for images, so that samples must be (C, H, W).

    >>> takes_images(Settings()), takes_images(Settings.model_validate({"encoder": "resnet18"}))
    (False, True)
    """
    return image_part(settings) is not None


def image_part(settings: Settings) -> str | None:
    """Return a part of the configuration that is for images, or None if all parts also take vectors.

    >>> image_part(Settings.model_validate({"noise": {"generator": "unet"}}))
    "noise.generator 'unet'"
    """
    views = settings.views
    named = [("encoder", settings.encoder), ("noise.generator", settings.noise.generator)]
    named += [("the view", view) for view in (views.noise, *views.augmentations)]
    found = next((f"{what} {choice.name!r}" for what, choice in named if choice.trait("for_images")), None)
    return found or ("views.local_crops" if views.local_crops else None)


def scaling_of(settings: Settings) -> Scaling:
    """Return how samples are standardised: as configured, or by channel for images."""
    scaling = settings.data.scaling
    if not takes_images(settings) or scaling == "channels":
        return scaling
    if scaling != "auto":
        raise UserError(f"data.scaling is {scaling!r}: images are scaled by 'channels'; leave it out.")
    return "channels"


def embedding_of(settings: Settings) -> EmbeddingName:
    """Return the kind of embedding: as configured, or ``joined`` for vectors and ``learned`` for images.

    >>> embedding_of(Settings()), embedding_of(Settings.model_validate({"encoder": "vit"}))
    ('joined', 'learned')
    """
    if settings.embedding != "auto":
        return settings.embedding
    return "learned" if takes_images(settings) else "joined"
