"""What the parts of a model are built from: the data, the encoder and sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.networks import ProjectionHead
from pinoise.noise import Columns, PiNoise, TrainingRows


class ImageBytes(Protocol):
    """Training images as bytes, channels last, made on request."""

    shape: tuple[int, ...]  # (n, H, W, C)
    source_rows: npt.NDArray[np.int64] | None  # their numbers in the source; None for all images of the source
    source_total: int  # the number of images in the source

    def __len__(self) -> int:
        """The number of images."""
        ...

    def __getitem__(self, part: slice, /) -> npt.NDArray[np.uint8]:
        """Return some images, (m, H, W, C)."""
        ...


@dataclass(frozen=True)
class Site:
    """What a method, a view or an objective is built from. Each takes what it needs."""

    unit: Tensor  # (*shape): the standard deviation of every standardised feature, the unit of noise; 0 for dead ones
    rows: TrainingRows  # the training samples, standardised
    encoder: nn.Module  # f_θ
    head_hidden: int
    head_features: int
    batch_size: int  # rows in a step, of all processes together
    local_crops: int = 0
    device: str = "cpu"
    noise: PiNoise | None = None  # the learned noise, for an objective
    columns: Columns | None = None  # the columns of a table that became several features, if there are any
    pixel_mean: Tensor | None = None  # (C,): for images, a pixel between 0 and 1 is x · pixel_scale + pixel_mean
    pixel_scale: Tensor | None = None  # (C,)
    images: Callable[[], ImageBytes] | None = None  # the training images as bytes
    progress: bool = False  # whether long work shows a progress bar

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.unit.shape)

    @property
    def features(self) -> int:
        """The width of the encoder's output."""
        features = getattr(self.encoder, "out_features", None)
        if not isinstance(features, int):
            raise UserError(
                f"the encoder {type(self.encoder).__name__} does not state its output size: "
                "set its integer attribute out_features."
            )
        return features

    @property
    def numeric_unit(self) -> Tensor:
        """The unit of every feature, 0 for those that only move as a whole, such as categories."""
        return self.unit if self.columns is None else self.unit * ~self.columns.several

    def projection_head(self) -> ProjectionHead:
        """Return a new projection head as in the paper."""
        return ProjectionHead(self.features, hidden=self.head_hidden, out_features=self.head_features)

    def pixel_units(self, owner: str) -> tuple[Tensor, Tensor]:
        """Return the mean and scale of every channel. Refuse samples that are not images."""
        if self.pixel_mean is None or self.pixel_scale is None:
            raise UserError(f"{owner} is for images: these samples have shape {self.shape}.")
        return self.pixel_mean, self.pixel_scale
