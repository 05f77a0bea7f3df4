"""The configuration of a run as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from pinoise.data.options import IMAGE_SIZE, ImageSize, ReadOptions, is_image_size
from pinoise.data.standardizer import Scaling
from pinoise.errors import UserError
from pinoise.networks.embedding import EmbeddingName
from pinoise.noise.scale_maps import Positive as ScaleMap
from pinoise.training.settings.base import Positive, Section
from pinoise.training.settings.methods import DINOSettings, MethodSettings, SimCLRSettings
from pinoise.training.settings.networks import (
    IMAGE_ENCODERS,
    EncoderSettings,
    HeadSettings,
    MLPSettings,
    ModuleSettings,
)
from pinoise.training.settings.noise import (
    IMAGE_GENERATORS,
    AdversarialSettings,
    FixedSettings,
    NoiseSettings,
    ObjectiveSettings,
    SupportedSettings,
)
from pinoise.training.settings.views import IMAGE_VIEWS, ViewmakerSettings, ViewSettings


def _image_size(value: object) -> object:
    """Refuse at once, in the words of the images, what is no size."""
    size = tuple(value) if isinstance(value, list) else value
    if size is not None and not is_image_size(size):
        raise PydanticCustomError("image_size", IMAGE_SIZE)
    return size


class DataSettings(Section):
    """Where the samples come from."""

    source: str = "digits"
    label: str | None = None
    rows: Annotated[int, Field(ge=2)] | None = None
    missing: Literal["median", "mean", "zero", "error"] = "median"
    categorical: tuple[str, ...] = ()  # columns of numbers that stand for categories
    drop: tuple[str, ...] = ()  # columns to leave out
    max_categories: Annotated[int, Field(ge=1)] = ReadOptions.max_categories  # of a text column; the rest share one
    scaling: Scaling = "auto"
    # Pixels a side, or height and width, that the images of a folder are brought to.
    size: Annotated[ImageSize | None, BeforeValidator(_image_size)] = None
    color: Literal["auto", "gray", "rgb"] = "auto"  # of a folder's images
    corrupt: Literal["refuse", "skip"] = "refuse"  # what to do with images of a folder that cannot be decoded
    cache: Path | None = None  # a folder that keeps decoded images, so that each is decoded once


class TrainingSettings(Section):
    """How long and on what to train."""

    epochs: Annotated[int, Field(ge=1)] = 100
    batch_size: Annotated[int, Field(ge=2)] = 256
    learning_rate: Positive = 1e-3
    noise_learning_rate: Positive | None = None  # ψ's own; if None, θ's, or ten times it for a ``global`` generator
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
    embedding: EmbeddingName | Literal["auto"] = "auto"  # joined for vectors, learned for images
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
        if self.views.local_crops and not isinstance(self.method, DINOSettings):
            raise ValueError(f"views.local_crops belongs to method 'dino', not {self.method.name!r}: leave it out")
        if self.views.local_crops and isinstance(self.encoder, MLPSettings):
            raise ValueError("views.local_crops are smaller images, which encoder 'mlp' does not take: choose another")
        if (self.noise.generator == "module") != (self.noise.factory is not None):
            raise ValueError("noise.generator 'module' and noise.factory belong together: give both or neither")
        if self.training.information_draws == 1:
            raise ValueError("training.information_draws is 1: information needs 2 draws or more, 0 measures none")
        return self


class NoiseDefaults(NamedTuple):
    """What an objective asks of the noise where the configuration leaves it open."""

    generator: str
    positive: ScaleMap


def noise_defaults(settings: Settings) -> NoiseDefaults:
    """Return generator and map of the noise, as configured or as the objective has them.

    >>> noise_defaults(Settings())
    NoiseDefaults(generator='global', positive='fixed-entropy')
    """
    noise, objective = settings.noise, settings.objective
    generator: str = _auto_generator(settings) if noise.generator == "auto" else noise.generator
    bounded = isinstance(objective, SupportedSettings | AdversarialSettings)
    positive = noise.positive if noise.positive != "auto" else "fixed-entropy" if bounded else "softplus"
    return NoiseDefaults("constant" if isinstance(objective, FixedSettings) else generator, positive)


def _auto_generator(settings: Settings) -> str:
    """One number per feature where noise is data-supported; else, and for images always, a network."""
    supported = isinstance(settings.objective, SupportedSettings)
    if takes_images(settings):
        return "shared" if supported else "resnet18"
    return "global" if supported else "mlp"


def takes_images(settings: Settings) -> bool:
    """Whether some part of the configuration is made for images, so that samples must be (C, H, W).

    >>> takes_images(Settings()), takes_images(Settings.model_validate({"encoder": "resnet18"}))
    (False, True)
    """
    return image_part(settings) is not None


def image_part(settings: Settings) -> str | None:
    """Name a part of the configuration that is made for images, None if all of it takes vectors too.

    >>> image_part(Settings.model_validate({"noise": {"generator": "unet"}}))
    "noise.generator 'unet'"
    """
    encoder, views = settings.encoder, settings.views
    if isinstance(encoder, IMAGE_ENCODERS) or (isinstance(encoder, ModuleSettings) and encoder.images):
        return f"encoder {encoder.name!r}"
    if settings.noise.generator in IMAGE_GENERATORS:
        return f"noise.generator {settings.noise.generator!r}"
    for view in (views.noise, *views.augmentations):
        if isinstance(view, IMAGE_VIEWS):
            return f"the view {view.name!r}"
    return "views.local_crops" if views.local_crops else None


def scaling_of(settings: Settings) -> Scaling:
    """How samples are standardised: as configured, and images by channel where that is left open."""
    scaling = settings.data.scaling
    if not takes_images(settings) or scaling == "channels":
        return scaling
    if scaling != "auto":
        raise UserError(f"data.scaling is {scaling!r}: images are scaled by 'channels'; leave it out.")
    return "channels"


def embedding_of(settings: Settings) -> EmbeddingName:
    """What users get for a sample: as configured, or joined with the sample unless that is an image.

    >>> embedding_of(Settings()), embedding_of(Settings.model_validate({"encoder": "vit"}))
    ('joined', 'learned')
    """
    if settings.embedding != "auto":
        return settings.embedding
    return "learned" if takes_images(settings) else "joined"
