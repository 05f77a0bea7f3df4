"""The sections of a configuration. What follows where they are silent is told in ``complete``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from annotated_types import Ge, Interval
from pydantic import BeforeValidator, Field, SkipValidation, ValidationError, model_validator

from pinoise import choices
from pinoise.data.options import ImageSize, ReadOptions
from pinoise.data.standardizer import SCALING, Scaling
from pinoise.errors import UserError, brief
from pinoise.networks.mlp import HEAD_HIDDEN, PROJECTION
from pinoise.noise import NEIGHBOURS
from pinoise.noise.module import check_covariance
from pinoise.noise.sigma import SMALLEST_SCALE
from pinoise.training.config.section import OPEN, Choice, Chosen, Exact, OrOpen, Section, split_at_commas
from pinoise.training.config.sentences import sentence_of


def _default(kind: choices.Kind) -> Any:
    return Field(default=kind.default, validate_default=True)


def _sides(value: Any) -> Any:
    """Return height and width that are written as 32,48. The check of ``ReadOptions`` says more than pydantic's."""
    sides = split_at_commas(value)
    are_written = isinstance(value, str) and len(sides) == 2 and all(side.isdecimal() for side in sides)
    return [int(side) for side in sides] if are_written else value


@dataclass(frozen=True, kw_only=True)
class DataSettings(Exact, ReadOptions):
    """The source of the samples, and how they are read and scaled.

    The ``target`` is a column of a table that a classifier predicts. Its cells may be empty, and it is no feature.
    """

    source: Annotated[str, Field(min_length=1)] = "digits"
    target: str | None = None
    scaling: Scaling = SCALING
    rows: choices.Times | None = ReadOptions.rows
    max_categories: choices.Size = ReadOptions.max_categories
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


class HeadSettings(Section):
    """The projection head."""

    hidden: choices.Size = HEAD_HIDDEN
    out_features: choices.Size = PROJECTION


class NoiseSettings(Section):
    """p_ψ(ε|x). The objective decides ``auto``, and a number of neighbours of None.

    Samples move to one of their ``neighbours``; 0 is noise around x. ``amplitude`` None is 1, or 2 for correlated noise
    without neighbours to move to. ``initial_scale`` None is the amplitude times the spread of neighbours, or 1 for
    noise that needs none.
    """

    generator: Annotated[Choice, Chosen(choices.GENERATOR)] = _default(choices.GENERATOR)
    distribution: choices.Distribution = choices.DISTRIBUTION
    mean: choices.Mean = choices.MEAN
    positive: Annotated[choices.ScaleMap, OrOpen()] = OPEN
    covariance: Annotated[choices.Covariance, OrOpen()] = OPEN
    neighbours: Annotated[int, Interval(ge=0, le=1000)] | None = None
    amplitude: choices.Positive | None = None
    initial_scale: Annotated[float, Field(ge=SMALLEST_SCALE)] | None = None
    normalize: choices.Positive | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        known = choices.INDEPENDENT if self.covariance == OPEN else self.covariance
        check_covariance(known, self.distribution, self.amplitude, self.initial_scale, has_support=True)
        return self

    @property
    def support_neighbours(self) -> int:
        """How many neighbours each row of the noise's support has; 0 if the noise needs no support.

        Noise needs it to move samples, and to be correlated as neighbours differ.
        """
        return self.neighbours or (0 if self.covariance == choices.INDEPENDENT else NEIGHBOURS)


class ViewSettings(Section):
    """Which views are compared.

    Pairing ``auto`` is ``sampled`` with augmentations, the objective's pairing with noise alone, and ``identity`` with
    neither.
    """

    pairing: Annotated[choices.PairingName, OrOpen()] = OPEN
    noise: Annotated[Choice, Chosen(choices.NOISE_VIEW)] = _default(choices.NOISE_VIEW)
    augmentations: tuple[Annotated[Choice, Chosen(choices.VIEW)], ...] = ()
    local_crops: Annotated[int, Field(ge=0, le=32)] = 0  # the number of small crops besides the two views, for DINO


class TrainingSettings(Section):
    """The length of training, its optimiser, and the device."""

    epochs: choices.Times = choices.EPOCHS
    batch_size: Annotated[choices.Entries, Ge(2)] = choices.BATCH_SIZE  # rows in a step, of all processes together
    learning_rate: choices.Positive = choices.LEARNING_RATE
    noise_learning_rate: choices.Positive | None = None  # of ψ; None follows θ's by ``PiNoise.param_groups``
    information_draws: Annotated[int, Interval(ge=0, le=choices.MOST_DRAWS)] = 8  # of noise; 0 measures no information
    seed: choices.Seed = 0
    device: str = "auto"
    devices: Annotated[int, Interval(ge=1, le=choices.MOST_PROCESSES)] = 1
    nodes: Annotated[int, Interval(ge=1, le=choices.MOST_PROCESSES)] = 1
    wait: Annotated[int, Interval(ge=1, le=86_400)] = 600  # seconds that processes wait for one another
    precision: choices.PrecisionName = choices.PRECISION
    checkpoint_every: choices.Times = 500  # steps between checkpoints
    patience: choices.Times | None = None  # epochs without a fall of the held-out rows' loss; None never stops early
    min_improvement: choices.NonNegative = 1e-3  # a smaller fall of that loss, in its own units, does not count


class Settings(Section):
    """The whole configuration of a run, as in ``config.yaml``. ``--set section.key=value`` changes one setting.

    >>> Settings.model_validate({"method": "clae"}).method.options["weight"]
    1.0
    """

    data: DataSettings = DataSettings()
    encoder: Annotated[Choice, Chosen(choices.ENCODER)] = _default(choices.ENCODER)
    head: HeadSettings = HeadSettings()
    embedding: Annotated[choices.EmbeddingName, OrOpen()] = OPEN  # auto: joined for vectors, learned for images
    method: Annotated[Choice, Chosen(choices.METHOD)] = _default(choices.METHOD)
    noise: NoiseSettings = NoiseSettings()
    objective: Annotated[Choice, Chosen(choices.OBJECTIVE)] = _default(choices.OBJECTIVE)
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
        if self.training.information_draws == 1:
            raise ValueError("training.information_draws is 1: give at least 2, or 0 to measure no information")
        return self

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


def parse_settings(
    values: Mapping[str, Any], *, names: Mapping[str, str] | None = None, distrust: choices.Distrust | None = None
) -> Settings:
    """Validate a nested mapping.

    Args:
        values: names, import paths and objects of parts, numbers and sections.
        names: the user's names of settings, by path, for error messages.
        distrust: the file that the values are from, if the user has not said to trust it.

    >>> parse_settings({"training": {"epochs": 3}}).training.epochs
    3
    >>> parse_settings({"training": {"epoch": 3}})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown setting 'training.epoch': did you mean 'training.epochs'?
    """
    try:
        return Settings.model_validate(_plain(values), context=distrust)
    except ValidationError as error:
        raise UserError(sentence_of(error, Settings, names=names)) from None
    except RecursionError:
        raise UserError("the settings are nested too deep.") from None


_MOST_BITS = 4096  # of a number; Python cannot even print much larger ones


def _plain(value: Any) -> Any:
    """Turn numpy's numbers, which parameter grids often hold, into Python's."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise UserError(f"a setting is {brief(value)}: no setting can be that large.")
    return value.item() if isinstance(value, np.generic) else value


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
