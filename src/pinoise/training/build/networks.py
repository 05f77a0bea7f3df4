"""f_θ, its embedding, and the units in which it sees samples."""

from __future__ import annotations

import importlib

import torch
from torch import Tensor, nn

from pinoise.data.dataset import Samples
from pinoise.data.layout import image_layout
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.networks import Embedding, MLPEncoder, ResNet, ViT, read_weights
from pinoise.training.settings import (
    MLPSettings,
    ModuleSettings,
    ResNet18Settings,
    ResNet50Settings,
    Settings,
    ViTSettings,
    embedding_of,
    image_part,
    scaling_of,
)


def build_standardizer(settings: Settings, x: Samples) -> Standardizer:
    """Learn the units of samples, which must be images where some part of the configuration is for them."""
    scaling = scaling_of(settings)
    if scaling == "channels":
        try:
            image_layout(tuple(x.shape[1:]))
        except UserError as error:
            part = image_part(settings) or "data.scaling 'channels'"
            raise UserError(f"{part} is for images, but {error}") from None
    return Standardizer.fit(x, scaling=scaling)


def feature_scale(standardizer: Standardizer) -> Tensor:
    """The standard deviation of every standardised feature, the unit of noise; 0 for dead features."""
    return torch.from_numpy(standardizer.deviation).to(torch.get_default_dtype())


def build_encoder(settings: Settings, shape: tuple[int, ...], *, pretrained: bool = False) -> nn.Module:
    """Return f_θ with fresh weights, or if ``pretrained`` with those of the file that the settings may name."""
    encoder = channels_together(_encoder(settings, shape))
    weights = getattr(settings.encoder, "weights", None)
    if pretrained and weights is not None and isinstance(encoder, ResNet):
        encoder.load_torchvision(read_weights(weights))
    return encoder


def _encoder(settings: Settings, shape: tuple[int, ...]) -> nn.Module:
    match settings.encoder:
        case MLPSettings(hidden=hidden, out_features=out_features):
            return MLPEncoder(shape, hidden=hidden, out_features=out_features)
        case ResNet18Settings() | ResNet50Settings() as resnet:
            deep = isinstance(resnet, ResNet50Settings)
            return ResNet(shape, depth=50 if deep else 18, width=resnet.width, stem=resnet.stem)
        case ViTSettings(patch=patch, dim=dim, depth=depth, heads=heads):
            return ViT(shape, patch=patch, dim=dim, depth=depth, heads=heads)
        case ModuleSettings(factory=factory):
            return _made_by(factory, shape)


def channels_together(network: nn.Module) -> nn.Module:
    """Lay out the weights of convolutions so that the channels of a pixel lie side by side in all that they compute.

    Convolutions are then mostly faster, on a CPU, too (``benchmarks/image_cost.py`` has both).
    """
    for weight in network.parameters():
        if weight.ndim == 4:
            # A copy, as a kernel of one pixel lies so already but has not the strides that its gradient will have.
            weight.data = torch.empty_like(weight.data, memory_format=torch.channels_last).copy_(weight.data)
    return network


def build_embedding(encoder: nn.Module, settings: Settings) -> Embedding:
    """Return what users get for a sample, from an encoder."""
    return Embedding(encoder, name=embedding_of(settings))


def _made_by(factory: str, shape: tuple[int, ...]) -> nn.Module:
    encoder = make_module(factory, shape, setting="encoder.factory")
    if not isinstance(getattr(encoder, "out_features", None), int):
        raise UserError(
            f"encoder.factory {factory!r} returned {type(encoder).__name__}: it must return a torch module that states "
            "its output size as the integer attribute out_features."
        )
    return encoder


def make_module(factory: str, *arguments: object, setting: str) -> nn.Module:
    """Call a function of the user's, named ``package.module:function``, that makes a module."""
    module_name, colon, function = factory.partition(":")
    if not module_name or not colon:
        raise UserError(f"{setting} is {factory!r}: write package.module:function.")
    try:
        make = getattr(importlib.import_module(module_name), function)
    except (ImportError, AttributeError) as error:
        raise UserError(f"{setting} {factory!r} cannot be found ({error}): write package.module:function.") from None
    if not callable(make):
        raise UserError(
            f"{setting} {factory!r} is of type {type(make).__name__}: name a function that makes a torch module."
        )
    made = make(*arguments)
    if not isinstance(made, nn.Module):
        raise UserError(f"{setting} {factory!r} returned {type(made).__name__}: it must return a torch module.")
    return made
