"""f_θ from settings, and whether it fits in memory."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from pinoise.choices import ENCODER
from pinoise.errors import UserError, shown
from pinoise.networks import evaluating
from pinoise.noise import make_generator
from pinoise.training.build.parts import made
from pinoise.training.config import Choice, Settings, encoder_of, noise_defaults
from pinoise.training.device import memory_gb


def build_encoder(settings: Settings, shape: tuple[int, ...], *, pretrained: bool = False) -> nn.Module:
    """Return f_θ with new weights. ``pretrained`` loads the file of weights in the settings, if there is one."""
    choice = encoder_of(settings)
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
