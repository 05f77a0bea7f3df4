"""Sections for f_θ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from pinoise.training.settings.base import Section, Size, named


class MLPSettings(Section):
    """The paper's encoder for vectors, d→hidden→hidden→out_features."""

    name: Literal["mlp"] = "mlp"
    hidden: Size = 1024
    out_features: Size = 256


class HeadSettings(Section):
    """The projection head."""

    hidden: Size = 256
    out_features: Size = 128


class ResNet18Settings(Section):
    """ResNet18 of a ``width``, 64 in the paper; ``weights`` is a file with a published state dict to start from."""

    name: Literal["resnet18"] = "resnet18"
    width: Size = 64
    stem: Literal["auto", "cifar", "imagenet"] = "auto"
    weights: Path | None = None


class ResNet50Settings(Section):
    """ResNet50, as ResNet18."""

    name: Literal["resnet50"] = "resnet50"
    width: Size = 64
    stem: Literal["auto", "cifar", "imagenet"] = "auto"
    weights: Path | None = None


class ViTSettings(Section):
    """A vision transformer."""

    name: Literal["vit"] = "vit"
    patch: Size = 4
    dim: Size = 192
    depth: Size = 6
    heads: Size = 3


class ModuleSettings(Section):
    """Any encoder: ``factory`` is ``package.module:function``, called with the shape of a sample.

    It returns a module with the integer attribute ``out_features``; ``images`` says whether it takes (C, H, W).
    """

    name: Literal["module"] = "module"
    factory: str
    images: bool = False


IMAGE_ENCODERS = (ResNet18Settings, ResNet50Settings, ViTSettings)

EncoderSettings = Annotated[
    MLPSettings | ResNet18Settings | ResNet50Settings | ViTSettings | ModuleSettings,
    Field(discriminator="name"),
    named("mlp"),
]
