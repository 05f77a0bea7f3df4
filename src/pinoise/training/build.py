"""Build modules from settings and the shape of the data. Training does not belong here."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pinoise.choices import ENCODER, METHOD, OBJECTIVE, VIEW, EmbeddingName, Kind, PairingName, check_call
from pinoise.data.dataset import Samples, Spans
from pinoise.data.layout import AS_IS, image_layout
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError, shown
from pinoise.methods import Method, PairLoss
from pinoise.networks import Blocks, Embedding, check_finite_weights, evaluating, load_weights
from pinoise.noise import NEIGHBOURS, SUPPORT_ROWS, Columns, PiNoise, Support, draw_bank, make_generator
from pinoise.randomness import Randomness
from pinoise.training.config import (
    Choice,
    Settings,
    embedding_of,
    encoder_of,
    image_part,
    looks_at_neighbours,
    noise_defaults,
    scaling_of,
)
from pinoise.training.device import BUILDING, memory_gb, seed_of
from pinoise.training.model import ContrastiveModel
from pinoise.training.objectives import FunctionObjective, Objective
from pinoise.views import FunctionView, Pairing, PiNoiseView, Site, View, local_crops

_MEASURED_ROWS, _MEASURED_BATCH = 2048, 128  # training rows that set the units of an embedding


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


def feature_scale(standardizer: Standardizer) -> Tensor:
    """The standard deviation of every standardised feature, the unit of noise; 0 for dead features."""
    return torch.from_numpy(standardizer.deviation).to(torch.get_default_dtype())


def columns_of(standardizer: Standardizer) -> Columns | None:
    """The columns of a table, if any of them became several features."""
    return Columns(len(standardizer.mean), standardizer.spans) if standardizer.spans else None


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
        self.source_rows: npt.NDArray[np.int64] | None = None if origin is None else origin.rows
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


def build_encoder(settings: Settings, shape: tuple[int, ...], *, pretrained: bool = False) -> nn.Module:
    """Return f_θ with new weights. ``pretrained`` loads the file of weights in the settings, if there is one."""
    choice = encoder_of(settings)
    if isinstance(choice.part, nn.Module):
        encoder: Any = copy.deepcopy(choice.part).float()  # a user's object stays as it was given
    else:
        encoder = _made(ENCODER, choice, choice.part, shape)
    if not isinstance(encoder, nn.Module):
        raise UserError(f"encoder {choice.name!r} made {type(encoder).__name__}: it must be a torch module.")
    if not isinstance(getattr(encoder, "out_features", None), int):
        raise UserError(
            f"encoder {choice.name!r} does not state its output size: set its integer attribute out_features."
        )
    if choice.own:
        _try_encoder(choice, encoder, shape)
    if pretrained and (load := getattr(encoder, "load_published", None)) is not None:
        load()
    return channels_together(encoder)


def _try_encoder(choice: Choice, encoder: nn.Module, shape: tuple[int, ...]) -> None:
    """Refuse a user's encoder that does not take the samples or does not return ``out_features`` features."""
    place = next(encoder.parameters(), torch.empty(0)).device
    try:
        with torch.no_grad(), evaluating(encoder):
            features = encoder(torch.zeros(2, *shape, device=place))
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        why = str(error).partition("\n")[0]
        raise UserError(f"encoder {choice.name!r} does not take samples of shape {shape}: {why}.") from error
    expected = (2, encoder.out_features)
    if not isinstance(features, Tensor) or features.shape != expected:
        raise UserError(
            f"encoder {choice.name!r} returned {shown(features)} for 2 samples: with its out_features it must return "
            f"{expected}."
        )


def channels_together(network: nn.Module) -> nn.Module:
    """Store the weights of convolutions in the channels-last layout, so that their outputs have it too.

    Convolutions are then usually faster, also on a CPU (``benchmarks/image_cost.py`` measures both layouts).
    """
    for weight in network.parameters():
        if weight.ndim == 4:
            # A copy: a 1×1 kernel already counts as channels-last, but lacks the strides that its gradient will have.
            weight.data = torch.empty_like(weight.data, memory_format=torch.channels_last).copy_(weight.data)
    return network


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
    return Embedding(encoder, name=embedding_of(settings), blocks=blocks, unit_rows=standardizer.unit_rows).eval()


def embedding_tensors(embedding: Embedding) -> dict[str, Tensor]:
    """Return the units of an embedding as tensors to save."""
    return embedding.blocks._asdict()


def build_noise(
    settings: Settings,
    unit: Tensor,
    encoder: nn.Module,
    *,
    support: Support | None = None,
    initial_scale: float | Tensor | None = None,
    columns: Columns | None = None,
    donors: Tensor | None = None,
) -> PiNoise:
    """Return untrained p_ψ(ε|x). If the objective learns no noise, the scale stays at its initial value.

    Args:
        settings: the sections ``noise`` and ``objective``.
        unit: the standard deviation of every standardised feature, 0 for dead ones, shape (*shape).
        encoder: the encoder, for a generator that reads its features.
        support: the training rows to which noise moves samples.
        initial_scale: the initial σ; None takes the value in the settings.
        columns: the columns that became several features.
        donors: rows to take such columns from, if there is no support.
    """
    noise, (generator, positive, covariance) = settings.noise, noise_defaults(settings)
    shape, outputs = tuple(unit.shape), 2 if noise.mean == "learned" else 1
    part = copy.deepcopy(generator.part).float() if isinstance(generator.part, nn.Module) else generator.part
    made = make_generator(part, shape, outputs, encoder=encoder, options=generator.options)
    shared = {id(parameter) for parameter in encoder.parameters()}
    if any(id(parameter) in shared for parameter in made.parameters()):
        raise UserError(
            f"generator {generator.name!r} registers the encoder, whose weights would then count as noise: "
            "keep it in a tuple, as in self._encoder = (encoder,)."
        )
    return PiNoise(
        shape,
        distribution=noise.distribution,
        mean=noise.mean,
        generator=channels_together(made),
        positive=positive,
        initial_scale=noise.initial_scale if initial_scale is None else initial_scale,
        feature_scale=unit,
        normalize=noise.normalize,
        support=support,
        covariance=covariance,
        amplitude=noise.amplitude if initial_scale is None else None,  # a stored scale has it already
        moves=settings.neighbours > 0,
        columns=columns,
        donors=donors,
    )


def support_neighbours(settings: Settings) -> int:
    """Return how many neighbours each row of the noise's support has; 0 if the noise needs no support.

    >>> support_neighbours(Settings()), support_neighbours(Settings.model_validate({"objective": "paper"}))
    (10, 0)
    """
    return settings.neighbours or (NEIGHBOURS if looks_at_neighbours(settings) else 0)


def restore_noise(
    settings: Settings, standardizer: Standardizer, encoder: nn.Module, tensors: Mapping[str, Tensor]
) -> PiNoise:
    """Return trained noise from its stored tensors. Tensors that do not fit raise torch's RuntimeError."""
    # Noise is built from these, so that comparing with what was built would not find them broken.
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith("generator.")}
    check_finite_weights(own, where="the noise")
    support = None
    if (bank := tensors.get("support.bank")) is not None:
        total = tensors.get("support.total", torch.tensor(0))
        if not bank.is_floating_point() or bank.shape[1:] != standardizer.shape or not len(bank) or total.shape != ():
            raise RuntimeError("the support has another shape than the samples")
        support = Support(
            bank, numbers=torch.arange(len(bank)), rows=int(total), k=max(1, support_neighbours(settings))
        )
    initial = tensors.get("initial_scale", 1.0)
    noise = build_noise(
        settings,
        feature_scale(standardizer),
        encoder,
        support=support,
        initial_scale=initial,
        columns=columns_of(standardizer),
        donors=_sound_donors(tensors.get("donors"), standardizer),
    )
    load_weights(noise, tensors, where="the noise")
    return noise.eval()


def _sound_donors(donors: Tensor | None, standardizer: Standardizer) -> Tensor | None:
    if donors is not None and (donors.shape[1:] != standardizer.shape or not donors.is_floating_point()):
        raise RuntimeError("the rows for its columns have another shape than the samples")
    return donors


def build_pairing(settings: Settings, site: Site) -> Pairing:
    """Return the pairing of the views in the settings."""
    noise = _noise_view(settings, site)
    augmentations = [view for item in settings.views.augmentations for view in build_views(item, site)]
    name = settings.views.pairing
    if name == "auto":
        name = _auto_pairing(settings, noise, has_augmentations=bool(augmentations))
    if name == "identity" and not settings.method.trait("makes_views"):
        raise UserError(
            f"method {settings.method.name!r} compares two views: give it a noise (views.noise) or augmentations."
        )
    local = local_crops(site, augmentations) if site.local_crops else None
    return Pairing(name, noise=noise, augmentations=augmentations, local=local, local_views=site.local_crops)


def _noise_view(settings: Settings, site: Site) -> View | None:
    if settings.is_learned:
        neighbours = support_neighbours(settings)
        support = Support.of(site.rows, k=neighbours) if neighbours else None
        donors = None if site.columns is None or support else draw_bank(site.rows, most=SUPPORT_ROWS)[0]
        noise = build_noise(settings, site.unit, site.encoder, support=support, columns=site.columns, donors=donors)
        return PiNoiseView(noise)
    if settings.views.noise.part is None:
        return None
    views = build_views(settings.views.noise, site)
    if len(views) > 1:
        raise UserError(
            f"views.noise is {settings.views.noise.name!r}, which makes {len(views)} views: put it under "
            "views.augmentations."
        )
    return views[0]


def _auto_pairing(settings: Settings, noise: View | None, *, has_augmentations: bool) -> PairingName:
    if has_augmentations:
        return "sampled"
    if noise is None:
        return "identity"
    chosen: PairingName = settings.objective.trait("pairing", Objective.pairing)
    return chosen if noise.learned is not None else Objective.pairing


def build_views(item: Choice, site: Site) -> tuple[View, ...]:
    """Return the view or the views of a choice."""
    part = item.part
    if isinstance(part, nn.Module):
        part = copy.deepcopy(part)
        return (part if isinstance(part, View) else FunctionView(part),)
    if inspect.isclass(part) and issubclass(part, View):
        built = _built(VIEW, item, View, 0, site)
        return built if isinstance(built, tuple) else (built,)
    function = _made(VIEW, item, part) if inspect.isclass(part) else _function(VIEW, item, 1)
    if not callable(function):
        raise UserError(
            f"view {item.name!r} makes {type(function).__name__}, which is not a function: give {VIEW.own}."
        )
    return (FunctionView(function),)


def _build_method(item: Choice, site: Site) -> Method:
    part = item.part
    if inspect.isclass(part) and issubclass(part, Method):
        return _built(METHOD, item, Method, 2, site)  # type: ignore[no-any-return]
    if inspect.isclass(part) or isinstance(part, nn.Module):
        raise UserError(f"method {item.name!r} is not a Method class: give {METHOD.own}.")
    return PairLoss(site.encoder, site.projection_head(), _function(METHOD, item, 2))


def _build_objective(item: Choice, site: Site) -> Objective:
    part = item.part
    if isinstance(part, Objective):
        return copy.deepcopy(part)
    if inspect.isclass(part) and issubclass(part, Objective):
        return _built(OBJECTIVE, item, Objective, 0, site)  # type: ignore[no-any-return]
    if inspect.isclass(part) or isinstance(part, nn.Module):
        raise UserError(f"objective {item.name!r} is not an Objective: give {OBJECTIVE.own}.")
    return FunctionObjective(_function(OBJECTIVE, item, 1))


def _built(kind: Kind, item: Choice, base: Any, arguments: int, site: Site) -> Any:
    """Build a part from its class. The base class's ``build`` gives the constructor this number of arguments."""
    if item.part.build.__func__ is base.build.__func__:
        check_call(kind, item.name, item.part, arguments, item.options)
    return _made(kind, item, item.part.build, site)


def _made(kind: Kind, item: Choice, make: Callable[..., Any], *place: object) -> Any:
    """Make a part. Refuse a user's part that cannot be called with these arguments."""
    check_call(kind, item.name, make, len(place), item.options)
    return make(*place, **item.options)


def _function(kind: Kind, item: Choice, arguments: int) -> Callable[..., Any]:
    """Return a user's function with its options bound. Refuse one that does not take this number of arguments."""
    check_call(kind, item.name, item.part, arguments, item.options)
    return partial(item.part, **item.options)


def check_options(settings: Settings) -> None:
    """Refuse options of one part that contradict each other, as far as they can be told without data."""
    for choice in settings.parts.values():
        if not choice.own and (check := choice.trait("check_options", None)) is not None:
            check(choice.options)


def check_size(settings: Settings, shape: tuple[int, ...]) -> None:
    """Refuse networks whose weights, gradients and moments do not fit in memory, before any memory is taken."""
    networks = []
    with torch.device("meta"):  # counts sizes without taking memory
        if not settings.encoder.own:
            networks.append(build_encoder(settings, shape))
        generator = noise_defaults(settings).generator
        if settings.is_learned and not generator.own and generator.name != "shared":
            outputs = 2 if settings.noise.mean == "learned" else 1
            networks.append(make_generator(generator.part, shape, outputs, options=generator.options))
    weights = sum(weight.numel() for network in networks for weight in network.parameters())
    needed, there = 16 * weights / 1e9, memory_gb()  # four numbers of four bytes for every weight
    if there is not None and needed > there:
        raise UserError(
            f"the networks need about {needed:.0f} GB and this machine has {there:.0f}: make them narrower "
            "(encoder.hidden or encoder.width, noise.generator.hidden or noise.generator.width)."
        )
