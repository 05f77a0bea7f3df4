"""The whole model from settings and the data: views, method and objective."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pinoise.choices import METHOD, OBJECTIVE
from pinoise.data.dataset import Samples, Spans
from pinoise.data.layout import AS_IS, image_layout
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.methods import Method, PairLoss
from pinoise.modes import Randomness
from pinoise.training.build.networks import build_encoder, check_size
from pinoise.training.build.noise import columns_of, feature_scale
from pinoise.training.build.parts import bound, built
from pinoise.training.build.views import build_pairing
from pinoise.training.config import Choice, Settings, image_part, scaling_of
from pinoise.training.device import BUILDING, seed_of
from pinoise.training.model import ContrastiveModel
from pinoise.training.objectives import FunctionObjective, Objective
from pinoise.views import Site


def build_standardizer(settings: Settings, x: Samples, *, spans: Spans = ()) -> Standardizer:
    """Learn the units of samples. If a part of the configuration is for images, the samples must be images.

    ``spans`` are the features of columns that became several, as of ``Dataset.spans``.
    """
    scaling = scaling_of(settings)
    if scaling == "channels":
        try:
            image_layout(tuple(x.shape[1:]))
        except UserError as error:
            part = image_part(settings) or "data.scaling 'channels'"
            raise UserError(f"{part} is for images, but {error}") from None
    return Standardizer.fit(x, scaling=scaling, spans=spans)


def build_model(
    settings: Settings, standardizer: Standardizer, rows: Rows, *, pretrained: bool = False, progress: bool = False
) -> ContrastiveModel:
    """Compose views, method and objective for standardised samples.

    Args:
        settings: the whole configuration.
        standardizer: the units of the samples.
        rows: the training samples, for views that need other samples.
        pretrained: whether the encoder starts from the file of weights in the settings, if there is one.
        progress: whether long work, such as finding the background of images, shows a progress bar.
    """
    unit = feature_scale(standardizer)
    if not bool(unit.any()):
        raise UserError("every feature is constant: there is nothing to learn from; give at least one that varies.")
    check_size(settings, standardizer.shape)
    encoder = build_encoder(settings, standardizer.shape, pretrained=pretrained)
    site = make_site(settings, standardizer, rows, encoder, progress=progress)
    pairing = build_pairing(settings, site)
    method = _build_method(settings.method, site)
    noise = None if pairing.noise is None else pairing.noise.learned
    objective = _build_objective(settings.objective, replace(site, noise=noise))
    foreign = any(choice.own for choice in settings.parts.values())
    return ContrastiveModel(pairing=pairing, method=method, objective=objective, foreign=foreign)


def seeded_model(
    settings: Settings, standardizer: Standardizer, rows: Rows, *, pretrained: bool = True, progress: bool = False
) -> ContrastiveModel:
    """Build the model with initial weights from the seed and, if there is one, the file of weights in the settings."""
    with Randomness(seed_of(settings.training.seed, BUILDING)).feeding():
        return build_model(settings, standardizer, rows, pretrained=pretrained, progress=progress)


def make_site(
    settings: Settings, standardizer: Standardizer, rows: Rows, encoder: nn.Module, *, progress: bool = False
) -> Site:
    """Return what the parts of a model are built from: the data, the encoder and sizes."""
    images: dict[str, Any] = {}
    if standardizer.layout != AS_IS:
        first = (slice(None), 0, 0)  # all pixels of a channel have the same units
        mean, scale = (part[first] / standardizer.white for part in (standardizer.mean, standardizer.scale))
        images = {
            "pixel_mean": torch.from_numpy(mean).float(),
            "pixel_scale": torch.from_numpy(scale).float(),
            "images": partial(TrainingImages, rows, standardizer),
        }
    return Site(
        unit=feature_scale(standardizer),
        columns=columns_of(standardizer),
        rows=rows,
        encoder=encoder,
        head_hidden=settings.head.hidden,
        head_features=settings.head.out_features,
        batch_size=settings.training.batch_size,
        local_crops=settings.views.local_crops,
        device=settings.training.device,
        progress=progress,
        **images,
    )


class TrainingImages:
    """Training images as bytes, channels last, recovered from standardised rows on request."""

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, rows: Rows, standardizer: Standardizer) -> None:
        channels, height, width = standardizer.shape
        self.shape = (len(rows), height, width, channels)
        origin = getattr(rows, "origin", None)
        self.source_rows: npt.NDArray[np.int64] | None = None if origin is None else np.asarray(origin.rows)
        self.source_total = len(rows) if origin is None else origin.total
        self._rows = rows
        self._standardizer = standardizer

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, part: slice) -> npt.NDArray[np.uint8]:
        chosen = torch.arange(*part.indices(len(self._rows)))
        standard = self._rows[chosen].double().numpy()
        values = 255 * (standard * self._standardizer.scale + self._standardizer.mean) / self._standardizer.white
        return np.ascontiguousarray(np.moveaxis(values.round().clip(0, 255).astype(np.uint8), 1, -1))


def _build_method(item: Choice, site: Site) -> Method:
    part = item.part
    if inspect.isclass(part) and issubclass(part, Method):
        return built(METHOD, item, Method, 2, site)  # type: ignore[no-any-return]
    if inspect.isclass(part) or isinstance(part, nn.Module):
        raise UserError(f"method {item.name!r} is not a Method class: give {METHOD.own}.")
    return PairLoss(site.encoder, site.projection_head(), bound(METHOD, item, 2))


def _build_objective(item: Choice, site: Site) -> Objective:
    part = item.part
    if isinstance(part, Objective):
        return copy.deepcopy(part)
    if inspect.isclass(part) and issubclass(part, Objective):
        return built(OBJECTIVE, item, Objective, 0, site)  # type: ignore[no-any-return]
    if inspect.isclass(part) or isinstance(part, nn.Module):
        raise UserError(f"objective {item.name!r} is not an Objective: give {OBJECTIVE.own}.")
    return FunctionObjective(bound(OBJECTIVE, item, 1))
