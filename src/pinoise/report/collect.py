"""Samples of a run's own data with the noise that the run learned for them, in the units of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from pinoise.data.dataset import Dataset, Part, Samples
from pinoise.data.layout import AS_IS, image_layout, undo_image_layout
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.experiments.sources import shown_part
from pinoise.model import Model

Array = npt.NDArray[Any]

PICTURES, MOST_PICTURES = 8, 32
VECTORS = 256
BYTES = (0.0, 255.0)  # black and white of pictures that are stored as bytes


@dataclass(frozen=True)
class NoisySamples:
    """Samples and their noise, in the units of the file.

    Arrays have the shape (m, *shape); pictures are (m, h, w) or (m, h, w, c), whatever the layout of the file.
    """

    originals: Array
    sigma: Array  # σ, or w of uniform noise
    mu: Array
    epsilon: Array  # one draw for every sample
    relative_sigma: Array  # in standard deviations of each feature
    are_pictures: bool
    part: str  # "test" or "training"
    symbol: str  # σ or w
    learns_mean: bool
    labels: tuple[str, ...] | None  # the class of every sample
    feature_names: tuple[str, ...] | None

    @property
    def noisy(self) -> Array:
        """x + ε."""
        return self.originals + self.epsilon

    @property
    def brightness(self) -> tuple[float, float]:
        """The values of black and white in pictures: those of bytes, or the smallest and the largest value shown."""
        return BYTES if self.originals.dtype == np.uint8 else (float(self.originals.min()), float(self.originals.max()))


def collect(run: Model, *, samples: int | None = None, seed: int = 0, data: Dataset | None = None) -> NoisySamples:
    """Return test rows of a run's own data, or training rows if it has no others, with the run's noise.

    Rows are taken at even distances over the part. σ of a picture is in pixel values.

    Args:
        run: a finished run with learned noise.
        samples: their number, at most all rows; None for the default, ``PICTURES`` or ``VECTORS``.
        seed: of the draw of ε.
        data: the run's own data, if the caller has read it already.
    """
    if run.noise is None:
        raise UserError(f"{run.path} has no learned noise: its views.noise is {run.settings.views.noise.name!r}.")
    if samples is not None and samples < 1:
        raise UserError(f"samples is {samples}: give at least 1.")
    data = run.own_data() if data is None else data
    pictures = are_pictures(data.train.x, run.standardizer)
    if pictures and samples is not None and samples > MOST_PICTURES:
        raise UserError(f"samples is {samples}: at most {MOST_PICTURES} pictures fit side by side.")
    chosen, name = shown_part(data, most=samples or (PICTURES if pictures else VECTORS))
    x = run.rows(chosen.x, where=run.settings.data.source)[torch.arange(len(chosen))]  # (m, *shape of the model)
    with torch.no_grad():
        drawn = run.noise.sample(x, generator=torch.Generator().manual_seed(seed))
        of_noise = [run.noise.scale(x), run.noise.mean(x), drawn, run.noise.relative_scale(x)]
    sigma, mu, epsilon, relative = (value.numpy().astype(np.float64) for value in of_noise)
    unit = _units(chosen.x, run.standardizer)

    def arranged(values: Array) -> Array:
        in_file = undo_image_layout(values, run.standardizer.layout)
        return to_pictures(in_file) if pictures else in_file

    originals: Array = chosen.x.toarray() if isinstance(chosen.x, sp.csr_array) else np.asarray(chosen.x)
    return NoisySamples(
        originals=to_pictures(originals) if pictures else originals,
        sigma=arranged(sigma * unit),
        mu=arranged(mu * unit),
        epsilon=arranged(epsilon * unit),
        relative_sigma=arranged(relative),
        are_pictures=pictures,
        part=name,
        symbol="w" if run.noise.distribution == "uniform" else "σ",
        learns_mean=run.noise.outputs == 2,
        labels=_labels(chosen, data.class_names),
        feature_names=data.feature_names,
    )


def are_pictures(x: Samples, standardizer: Standardizer) -> bool:
    """Whether samples are images: what an image network was trained on, or bytes with height and width."""
    return standardizer.layout != AS_IS or (len(x.shape) in (3, 4) and x.dtype == np.uint8)


def to_pictures(x: Array) -> Array:
    """Return samples as they lie in a file as pictures, (m, h, w) or (m, h, w, c).

    >>> to_pictures(np.zeros((5, 3, 32, 24))).shape, to_pictures(np.zeros((5, 32, 24))).shape
    ((5, 32, 24, 3), (5, 32, 24))
    """
    return np.moveaxis(x, 1, -1) if image_layout(x.shape[1:]) == "channels-first" else x


def _units(x: Samples, standardizer: Standardizer) -> Array:
    """Return the size in the file of 1 inside the model: for every feature, and every row if rows have length 1."""
    units: Array = standardizer.units(x)
    if not standardizer.unit_rows:
        return units
    return units * standardizer.norms(x).reshape(-1, *(1,) * units.ndim)


def _labels(part: Part, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if part.y is None:
        return None
    return tuple(f"class {label}" if names is None else str(names[label]) for label in part.y)
