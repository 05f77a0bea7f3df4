"""The units of the data, the whole model and the embedding users get: built from settings, or from stored tensors.

A model is views, method and objective. Units are a standardiser; those of the embedding are measured on training rows.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pinoise.choices import METHOD, OBJECTIVE, EmbeddingName, Kind
from pinoise.data.dataset import Samples, Spans
from pinoise.data.layout import AS_IS, LAYOUTS, image_layout
from pinoise.data.moments import Tails
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.methods import Method, PairLoss
from pinoise.modes import BUILDING, Randomness, seed_of
from pinoise.networks import Blocks, Embedding, check_finite_weights, load_weights, read_tensors
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


def standardizer_tensors(standardizer: Standardizer) -> dict[str, Tensor]:
    """Return a standardiser as tensors to save."""
    plain = {name: getattr(standardizer, name) for name in ("mean", "scale", "deviation", "unit_rows", "white")}
    tails = {} if standardizer.tails is None else standardizer.tails._asdict()
    plain |= {f"tails_{name}": value for name, value in tails.items()}
    plain |= {"spans": standardizer.spans} if standardizer.spans else {}
    return {name: torch.from_numpy(np.array(value)) for name, value in plain.items()} | {
        "layout": torch.tensor(LAYOUTS.index(standardizer.layout))
    }


def read_standardizer(path: Path) -> Standardizer:
    """Read the standardiser of a run folder."""
    tensors = read_tensors(path)
    check_finite_weights(tensors, where=path)
    found = {name: np.asarray(tensor) for name, tensor in tensors.items()}
    try:
        return Standardizer(
            **{name: found[name] for name in ("mean", "scale", "deviation")},
            unit_rows=bool(found["unit_rows"]),
            layout=LAYOUTS[int(found["layout"])],
            white=float(found["white"]),
            tails=Tails(found["tails_mean"], found["tails_scale"]) if "tails_mean" in found else None,
            spans=tuple((start, stop) for start, stop in found["spans"].tolist()) if "spans" in found else (),
        )
    except KeyError as error:
        raise UserError(f"{path} has no tensor {error} of a standardiser: the file is damaged.") from None


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
    blocks = Blocks(torch.zeros(cast(int, encoder.out_features)), torch.zeros(()))
    name, unit_rows = complete(settings).embedding, standardizer.unit_rows
    embedding = Embedding(encoder, name=name, blocks=blocks, unit_rows=unit_rows)
    load_weights(embedding, {**embedding.state_dict(), **tensors}, where="the embedding")
    return embedding.eval()


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
        images = {"pixel_mean": torch.from_numpy(mean).float(), "pixel_scale": torch.from_numpy(scale).float()}
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
    made = _class_or_function(METHOD, item, Method, 2, site)
    return made if isinstance(made, Method) else PairLoss(site.encoder, site.projection_head(), made)


def _build_objective(item: Choice, site: Site) -> Objective:
    if isinstance(item.part, Objective):
        return copy.deepcopy(item.part)
    made = _class_or_function(OBJECTIVE, item, Objective, 0, site)
    return made if isinstance(made, Objective) else FunctionObjective(made)


def _class_or_function(kind: Kind, item: Choice, base: type[Any], arguments: int, site: Site) -> Any:
    """Return a part that is built from its class, or a user's function. ``arguments`` is as in ``built``."""
    part = item.part
    if inspect.isclass(part) and issubclass(part, base):
        return built(kind, item, base, arguments, site)
    if inspect.isclass(part) or isinstance(part, nn.Module):
        raise UserError(f"{kind.noun} {item.name!r} is no {base.__name__}: give {kind.own}.")
    return bound(kind, item, arguments or 1)
