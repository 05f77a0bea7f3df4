"""Sections for ℓ(x; θ)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pinoise.training.settings.base import NonNegative, Positive, Section, Share, Size, named


class SimCLRSettings(Section):
    """SimCLR."""

    name: Literal["simclr"] = "simclr"
    temperature: Positive = 0.5


class SimCLSettings(Section):
    """SimCL; ``strength`` is c."""

    name: Literal["simcl"] = "simcl"
    temperature: Positive = 0.5
    strength: Positive = 0.2


class CLAESettings(Section):
    """CLAE; ``strength`` is e in standard deviations, ``weight`` is α."""

    name: Literal["clae"] = "clae"
    temperature: Positive = 0.5
    strength: Positive = 0.5
    weight: NonNegative = 1.0


class MoCoSettings(Section):
    """MoCo v2; ``queue`` is the number of keys that are kept."""

    name: Literal["moco"] = "moco"
    temperature: Positive = 0.2
    momentum: Share = 0.99
    queue: Annotated[int, Field(ge=2)] = 4096


class MemoryBankSettings(Section):
    """A bank of past embeddings; ``momentum`` is how much of an entry stays when its row comes again."""

    name: Literal["memorybank"] = "memorybank"
    temperature: Positive = 0.2
    momentum: Share = 0.5
    negatives: Annotated[int, Field(ge=1)] = 4096


class BYOLSettings(Section):
    """BYOL; ``momentum`` is that of the target network at the start, and rises to 1."""

    name: Literal["byol"] = "byol"
    momentum: Share = 0.996


class SimSiamSettings(Section):
    """SimSiam."""

    name: Literal["simsiam"] = "simsiam"


class DINOSettings(Section):
    """DINO; ``prototypes`` is the width of what student and teacher compare.

    The published momentum is 0.996, for a hundred times as many steps as small data gives.
    """

    name: Literal["dino"] = "dino"
    temperature: Positive = 0.1
    teacher_temperature: Positive = 0.04
    momentum: Share = 0.99
    centre_momentum: Share = 0.9
    prototypes: Size = 1024


MethodSettings = Annotated[
    SimCLRSettings
    | SimCLSettings
    | CLAESettings
    | MoCoSettings
    | MemoryBankSettings
    | BYOLSettings
    | SimSiamSettings
    | DINOSettings,
    Field(discriminator="name"),
    named("simclr"),
]
