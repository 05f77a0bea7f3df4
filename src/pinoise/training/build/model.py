"""The units of the data, the whole model and the embedding users get: built from settings, or from stored tensors.

A model is views, method and objective. Units are a standardiser; those of the embedding are measured on training rows.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pinoise.choices import METHOD, OBJECTIVE, EmbeddingName
from pinoise.data.dataset import Samples, Spans
from pinoise.data.layout import AS_IS, LAYOUTS, image_layout
from pinoise.data.moments import Tails
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.methods import Method, PairLoss
from pinoise.modes import BUILDING, Randomness, seed_of
from pinoise.networks import Blocks, Embedding, check_finite_weights, read_tensors
from pinoise.training.build.parts import (
    bound,
    build_encoder,
    build_pairing,
    built,
    check_size,
    columns_of,
    feature_scale,
)
from pinoise.training.config import Choice, Settings, complete, image_part
from pinoise.training.objectives import ContrastiveModel, FunctionObjective, Objective
from pinoise.views import Site

_OF_FEATURES, _ALONE = ("mean", "scale", "deviation"), ("unit_rows", "layout", "white")
_OF_TAILS = ("tails_mean", "tails_scale")  # only where tails are compressed


def read_standardizer(path: Path) -> Standardizer:
    """Read the standardiser of a run folder."""
    return standardizer_from(read_tensors(path), where=path)


def standardizer_tensors(standardizer: Standardizer) -> dict[str, Tensor]:
    """Return a standardiser as tensors to save."""
    tails = () if standardizer.tails is None else zip(_OF_TAILS, standardizer.tails, strict=True)
    spans = {"spans": torch.tensor(standardizer.spans)} if standardizer.spans else {}
    return {
        **spans,
        **{name: torch.from_numpy(value) for name, value in tails},
        "mean": torch.from_numpy(standardizer.mean),
        "scale": torch.from_numpy(standardizer.scale),
        "deviation": torch.from_numpy(standardizer.deviation),
        "unit_rows": torch.tensor(standardizer.unit_rows),
        "layout": torch.tensor(LAYOUTS.index(standardizer.layout)),
        "white": torch.tensor(standardizer.white, dtype=torch.float64),
    }


def standardizer_from(tensors: Mapping[str, Tensor], *, where: object) -> Standardizer:
    """Return the standardiser from saved tensors. Refuse tensors that no standardiser has.

    Args:
        tensors: what ``standardizer_tensors`` returned.
        where: the file, for messages.

    >>> standardizer_from({"mean": torch.zeros(2, dtype=torch.float64)}, where="s.safetensors")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: s.safetensors has no sound tensor 'scale' of a standardiser: the file is damaged.
    """
    check_finite_weights(tensors, where=where)
    shape = tensors["mean"].shape if "mean" in tensors else None
    tails = _OF_TAILS if any(name in tensors for name in _OF_TAILS) else ()
    for name in (*_OF_FEATURES, *_ALONE, *tails):
        if name not in tensors or tensors[name].shape != (() if name in _ALONE else shape):
            raise UserError(f"{where} has no sound tensor {name!r} of a standardiser: the file is damaged.")
    found = {name: np.asarray(tensor) for name, tensor in tensors.items()}
    return Standardizer(
        **{name: found[name] for name in _OF_FEATURES},
        unit_rows=bool(found["unit_rows"]),
        layout=LAYOUTS[int(found["layout"])],
        white=float(found["white"]),
        tails=Tails(*(found[name] for name in tails)) if tails else None,
        spans=tuple((start, stop) for start, stop in found["spans"].tolist()) if "spans" in found else (),
    )


_MEASURED_ROWS, _MEASURED_BATCH = 2048, 128  # training rows that set the units of an embedding


def build_embedding(encoder: nn.Module, name: EmbeddingName, standardizer: Standardizer, rows: Rows) -> Embedding:
    """Return an embedding on an encoder, in units of at most 2,048 training rows, evenly spaced."""
    size = min(len(rows), _MEASURED_ROWS)
    batches = (rows[some] for some in (torch.arange(size) * len(rows) // size).split(_MEASURED_BATCH))
    return Embedding.measured(encoder, batches, name=name, unit_rows=standardizer.unit_rows).eval()


def restore_embedding(
    encoder: nn.Module, settings: Settings, standardizer: Standardizer, tensors: Mapping[str, Tensor]
) -> Embedding:
    """Return an embedding from its stored units. Units that do not fit raise torch's RuntimeError."""
    width: Any = encoder.out_features
    empty = Blocks(torch.zeros(width), torch.zeros(()))
    if tensors.keys() != empty._asdict().keys():
        raise RuntimeError("the units of the embedding are not there")
    blocks = empty._replace(**tensors)
    if any(stored.shape != own.shape or stored.dtype != own.dtype for stored, own in zip(blocks, empty, strict=True)):
        raise RuntimeError("the units of the embedding have another shape")
    check_finite_weights(tensors, where="the embedding")
    return Embedding(encoder, name=complete(settings).embedding, blocks=blocks, unit_rows=standardizer.unit_rows).eval()


def embedding_tensors(embedding: Embedding) -> dict[str, Tensor]:
    """Return the units of an embedding as tensors to save."""
    return embedding.blocks._asdict()


def build_standardizer(settings: Settings, x: Samples, *, spans: Spans = ()) -> Standardizer:
    """Learn the units of samples. If a part of the configuration is for images, the samples must be images.

    ``spans`` are the features of columns that became several, as of ``Dataset.spans``.
    """
    scaling = complete(settings).data.scaling
    if scaling == "channels":
        try:
            image_layout(tuple(x.shape[1:]))
        except UserError as error:
            part = image_part(settings) or "data.scaling 'channels'"
            raise UserError(f"{part} is for images, but {error}") from None
    return Standardizer.fit(x, scaling=scaling, spans=spans)


def build_model(
    settings: Settings, standardizer: Standardizer, rows: Rows, *, pretrained: bool = False
) -> ContrastiveModel:
    """Compose views, method and objective for standardised samples.

    Args:
        settings: the whole configuration.
        standardizer: the units of the samples.
        rows: the training samples, for views that need other samples.
        pretrained: whether the encoder starts from the file of weights in the settings, if there is one.
    """
    settings = complete(settings)
    unit = feature_scale(standardizer)
    if not bool(unit.any()):
        raise UserError("every feature is constant: there is nothing to learn from; give at least one that varies.")
    check_size(settings, standardizer.shape)
    encoder = build_encoder(settings, standardizer.shape, pretrained=pretrained)
    site = make_site(settings, standardizer, rows, encoder)
    pairing = build_pairing(settings, site)
    method = _build_method(settings.method, site)
    noise = None if pairing.noise is None else pairing.noise.learned
    objective = _build_objective(settings.objective, replace(site, noise=noise))
    foreign = any(choice.own for choice in settings.parts.values())
    return ContrastiveModel(pairing=pairing, method=method, objective=objective, foreign=foreign)


def seeded_model(
    settings: Settings, standardizer: Standardizer, rows: Rows, *, pretrained: bool = True
) -> ContrastiveModel:
    """Build the model with initial weights from the seed and, if there is one, the file of weights in the settings."""
    with Randomness(seed_of(settings.training.seed, BUILDING)).lent():
        return build_model(settings, standardizer, rows, pretrained=pretrained)


def make_site(settings: Settings, standardizer: Standardizer, rows: Rows, encoder: nn.Module) -> Site:
    """Return what the parts of a model are built from: the data, the encoder and sizes."""
    images: dict[str, Any] = {}
    if standardizer.layout != AS_IS:
        first = (slice(None), 0, 0)  # all pixels of a channel have the same units
        mean, scale = (part[first] / standardizer.white for part in (standardizer.mean, standardizer.scale))
        images = {
            "pixel_mean": torch.from_numpy(mean).float(),
            "pixel_scale": torch.from_numpy(scale).float(),
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
        **images,
    )


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
