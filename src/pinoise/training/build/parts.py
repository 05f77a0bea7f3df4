"""Each part of a model from its choice: f_θ, p_ψ(ε|x), 𝒜 and its pairing. What is called is checked before."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pinoise.choices import ENCODER, VIEW, Kind, check_call
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError, shown
from pinoise.networks import check_finite_weights, evaluating, load_weights
from pinoise.noise import SUPPORT_ROWS, Columns, PiNoise, Support, draw_bank, make_generator
from pinoise.training.config import Choice, NoiseSettings, Settings, complete
from pinoise.views import FunctionView, Pairing, PiNoiseView, Site, View, local_crops


def built(kind: Kind, item: Choice, base: Any, arguments: int, site: Site) -> Any:
    """Build a part from its class. The base class's ``build`` gives the constructor this number of arguments."""
    if item.part.build.__func__ is base.build.__func__:
        check_call(kind, item.name, item.part, arguments, item.options)
    return made(kind, item, item.part.build, site)


def made(kind: Kind, item: Choice, make: Callable[..., Any], *place: object) -> Any:
    """Make a part. Refuse a user's part that cannot be called with these arguments."""
    check_call(kind, item.name, make, len(place), item.options)
    return make(*place, **item.options)


def bound(kind: Kind, item: Choice, arguments: int) -> Callable[..., Any]:
    """Return a user's function with its options bound. Refuse one that does not take this number of arguments."""
    check_call(kind, item.name, item.part, arguments, item.options)
    return partial(item.part, **item.options)


def check_options(settings: Settings) -> None:
    """Refuse options of one part that contradict each other, as far as they can be told without data."""
    for choice in settings.parts.values():
        if not choice.own and (check := choice.trait("check_options", None)) is not None:
            check(choice.options)


def build_encoder(settings: Settings, shape: tuple[int, ...], *, pretrained: bool = False) -> nn.Module:
    """Return f_θ with new weights. ``pretrained`` loads the file of weights in the settings, if there is one."""
    choice = settings.encoder
    if isinstance(choice.part, nn.Module):
        encoder: Any = copy.deepcopy(choice.part).float()  # a user's object stays as it was given
    else:
        encoder = made(ENCODER, choice, choice.part, shape)
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


def check_size(settings: Settings, shape: tuple[int, ...]) -> None:
    """Refuse networks whose weights, gradients and moments do not fit in memory, before any memory is taken."""
    networks = []
    with torch.device("meta"):  # counts sizes without taking memory
        if not settings.encoder.own:
            networks.append(build_encoder(settings, shape))
        generator = settings.noise.generator
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


def feature_scale(standardizer: Standardizer) -> Tensor:
    """The standard deviation of every standardised feature, the unit of noise; 0 for dead features."""
    return torch.from_numpy(standardizer.deviation).to(torch.get_default_dtype())


def columns_of(standardizer: Standardizer) -> Columns | None:
    """The columns of a table, if any of them became several features."""
    return Columns(len(standardizer.mean), standardizer.spans) if standardizer.spans else None


def build_noise(noise: NoiseSettings, unit: Tensor, encoder: nn.Module, **data: Any) -> PiNoise:
    """Return untrained p_ψ(ε|x).

    Args:
        noise: the settings of the noise, with nothing left open.
        unit: the standard deviation of every standardised feature, 0 for dead ones, shape (*shape).
        encoder: the encoder, for a generator that reads its features.
        **data: of ``PiNoise``, what is of the data: support, columns and donors, and of stored noise the initial scale.
    """
    generator = noise.generator
    shape, outputs = tuple(unit.shape), 2 if noise.mean == "learned" else 1
    part = copy.deepcopy(generator.part).float() if isinstance(generator.part, nn.Module) else generator.part
    made = make_generator(part, shape, outputs, encoder=encoder, options=generator.options)
    shared = {id(parameter) for parameter in encoder.parameters()}
    if any(id(parameter) in shared for parameter in made.parameters()):
        raise UserError(
            f"generator {generator.name!r} registers the encoder, whose weights would then count as noise: "
            "keep it in a tuple, as in self._encoder = (encoder,)."
        )
    same = ("distribution", "mean", "positive", "normalize", "covariance", "initial_scale", "amplitude")
    options = {name: getattr(noise, name) for name in same} | data
    made, moves = channels_together(made), bool(noise.neighbours)
    return PiNoise(shape, generator=made, feature_scale=unit, moves=moves, **options)


def restore_noise(
    settings: Settings, standardizer: Standardizer, encoder: nn.Module, tensors: Mapping[str, Tensor]
) -> PiNoise:
    """Return trained noise from its stored tensors. Tensors that do not fit raise torch's RuntimeError."""
    chosen = complete(settings).noise
    # Noise is built from these, so that comparing with what was built would not find them broken.
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith("generator.")}
    check_finite_weights(own, where="the noise")
    support = None
    if (bank := tensors.get("support.bank")) is not None:
        numbers, rows = torch.arange(len(bank)), int(tensors.get("support.total", 0))
        support = Support(bank, numbers=numbers, rows=rows, k=max(1, chosen.support_neighbours))
    donors = tensors.get("donors")
    data = {"support": support, "columns": columns_of(standardizer), "donors": donors}
    start = {"initial_scale": tensors.get("initial_scale", 1.0), "amplitude": None}  # the scale has it already
    noise = build_noise(chosen, feature_scale(standardizer), encoder, **data, **start)
    load_weights(noise, tensors, where="the noise")
    return noise.eval()


def build_pairing(settings: Settings, site: Site) -> Pairing:
    """Return the pairing of the views in the settings."""
    noise = _noise_view(settings, site)
    augmentations = [build_view(item, site) for item in settings.views.augmentations]
    name = settings.views.pairing
    if name == "identity" and not settings.method.trait("makes_views"):
        raise UserError(
            f"method {settings.method.name!r} compares two views: give it a noise (views.noise) or augmentations."
        )
    local = local_crops(site, augmentations) if site.local_crops else None
    return Pairing(name, noise=noise, augmentations=augmentations, local=local, local_views=site.local_crops)


def _noise_view(settings: Settings, site: Site) -> View | None:
    if settings.is_learned:
        neighbours = settings.noise.support_neighbours
        support = Support.of(site.rows, k=neighbours) if neighbours else None
        donors = None if site.columns is None or support else draw_bank(site.rows, most=SUPPORT_ROWS)[0]
        data = {"support": support, "columns": site.columns, "donors": donors}
        return PiNoiseView(build_noise(settings.noise, site.unit, site.encoder, **data))
    if settings.views.noise.part is None:
        return None
    return build_view(settings.views.noise, site)


def build_view(item: Choice, site: Site) -> View:
    """Return the view of a choice."""
    part = item.part
    if isinstance(part, nn.Module):
        part = copy.deepcopy(part)
        return part if isinstance(part, View) else FunctionView(part)
    if inspect.isclass(part) and issubclass(part, View):
        return built(VIEW, item, View, 0, site)  # type: ignore[no-any-return]
    function = made(VIEW, item, part) if inspect.isclass(part) else bound(VIEW, item, 1)
    if not callable(function):
        raise UserError(
            f"view {item.name!r} makes {type(function).__name__}, which is not a function: give {VIEW.own}."
        )
    return FunctionView(function)


def memory_gb() -> float | None:
    """Return the machine's memory in GB, or None if it is unknown."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError, AttributeError):
        return None
