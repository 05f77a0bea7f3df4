"""p_ψ(ε|x), the rows that it moves samples along, and what it optimises."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.information import mutual_information
from pinoise.noise import (
    Adversarial,
    Fixed,
    Information,
    Objective,
    Paper,
    PiNoise,
    Support,
    Supported,
    build_generator,
    prior_scale,
)
from pinoise.training.build.networks import channels_together, feature_scale, make_module
from pinoise.training.settings import (
    AdversarialSettings,
    FixedSettings,
    InformationSettings,
    PaperSettings,
    Settings,
    SupportedSettings,
    noise_defaults,
)

# Enough rows to stand for the marginals of every feature, at no more than 64 MB.
_BANK_ENTRIES = 1 << 24

# Rows among which neighbours are searched: their number bounds what the search adds to a step, however many rows.
SUPPORT_ROWS = 2048

# Up to so many rows, finding everyone's neighbours whenever σ has moved costs less than searching in every step.
TABLE_ROWS = 16_384


def build_noise(
    settings: Settings,
    unit: Tensor,
    encoder: nn.Module,
    *,
    support: Support | None = None,
    initial_scale: float | Tensor | None = None,
) -> PiNoise:
    """Return p_ψ(ε|x), untrained; the objective ``fixed`` keeps it at its initial scale.

    Args:
        settings: the sections ``noise`` and ``objective``.
        unit: the standard deviation of every standardised feature, 0 for dead ones, shape (*shape).
        encoder: for a generator that shares its features.
        support: the rows that noise moves samples to.
        initial_scale: σ at the start, where it is known; else that of the settings, or else how much neighbours in the
            support differ.
    """
    noise = settings.noise
    name, positive = noise_defaults(settings)
    shape, outputs = tuple(unit.shape), 2 if noise.mean == "learned" else 1
    if name == "module":
        generator = make_module(noise.factory or "", shape, outputs, setting="noise.factory")
    else:
        generator = build_generator(
            name, shape, outputs=outputs, hidden=noise.hidden, width=noise.width, encoder=encoder
        )
    initial = noise.initial_scale if initial_scale is None else initial_scale
    if initial is None and support is not None:
        # w of uniform noise on (−w, w) is √3 times its standard deviation.
        initial = prior_scale(support.spread(), unit) * (math.sqrt(3) if noise.distribution == "uniform" else 1)
    return PiNoise(
        shape,
        distribution=noise.distribution,
        mean=noise.mean,
        generator=channels_together(generator),
        positive=positive,
        initial_scale=1.0 if initial is None else initial,
        feature_scale=unit,
        normalize=noise.normalize,
        support=support,
    )


def restore_noise(
    settings: Settings, standardizer: Standardizer, encoder: nn.Module, tensors: Mapping[str, Tensor]
) -> PiNoise:
    """Return trained noise from its stored tensors; those that do not fit are a RuntimeError, as torch has it."""
    support = None
    if (bank := tensors.get("support.bank")) is not None:
        neighbours = getattr(settings.objective, "neighbours", 1)
        total = int(tensors["support.total"]) if "support.total" in tensors else len(bank)
        support = Support(bank, numbers=torch.arange(len(bank)), rows=total, k=neighbours)
    initial = tensors.get("initial_scale", 1.0)
    noise = build_noise(settings, feature_scale(standardizer), encoder, support=support, initial_scale=initial)
    noise.load_state_dict(dict(tensors))
    return noise.eval()


def build_support(rows: Rows, *, neighbours: int, mutual: bool = True) -> Support:
    """Return the rows among which neighbours are searched: all of them, or a sample of many."""
    bank, numbers = bank_of(rows, most=SUPPORT_ROWS)
    fetch = rows.__getitem__ if len(numbers) < len(rows) <= TABLE_ROWS else None
    return Support(bank, numbers=numbers, rows=len(rows), k=neighbours, mutual=mutual, fetch=fetch)


def build_objective(settings: Settings, noise: PiNoise | None) -> Objective:
    """Return what θ and ψ optimise; ``noise`` is None where the views are predefined."""
    match settings.objective:
        case SupportedSettings(weight=weight):
            if noise is None:
                return Fixed()  # predefined views alone: there is nothing for the objective to shape
            return Supported(prior=noise.initial_scale.clone(), weight=weight)
        case PaperSettings(penalty=penalty):
            return Paper(penalty=penalty)
        case AdversarialSettings():
            return Adversarial()
        case InformationSettings(draws=draws):
            return Information(_information, draws=draws)
        case FixedSettings():
            return Fixed()


def _information(losses: Tensor) -> Tensor:
    return mutual_information(losses, points=64)  # enough for a gradient, at half the price


def bank_of(rows: Rows, *, most: int | None = None) -> tuple[Tensor, Tensor]:
    """Return random training rows, always the same for the same data, and their row numbers, as memory allows."""
    features = rows[torch.arange(1)].numel()
    size = min(len(rows), max(256, _BANK_ENTRIES // features), most or len(rows))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    numbers = order[:size].sort().values
    return rows[numbers], numbers
