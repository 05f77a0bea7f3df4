"""From settings and the shape of the data to the model that is trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.methods import CLAE, Method, SimCL, SimCLR
from pinoise.networks import MLPEncoder, ProjectionHead
from pinoise.noise import Fixed, Objective, Paper, PiNoise
from pinoise.training.environment import memory_gb
from pinoise.training.model import ContrastiveModel
from pinoise.training.settings import (
    CLAESettings,
    DACLSettings,
    FixedSettings,
    GaussianSettings,
    IdentitySettings,
    ModalsSettings,
    NoNoiseSettings,
    PiSettings,
    ScarfSettings,
    Section,
    Settings,
    SimCLRSettings,
    SimCLSettings,
    VimeSettings,
)
from pinoise.views import (
    GaussianNoise,
    Identity,
    Mixup,
    ModalsRatios,
    Pairing,
    PairingName,
    PiNoiseView,
    ScarfSwap,
    View,
    VimeSwap,
    modals,
)

# Enough rows to stand for the marginals of every feature, at no more than 64 MB.
_BANK_ENTRIES = 1 << 24


def build_model(settings: Settings, standardizer: Standardizer, rows: Rows) -> ContrastiveModel:
    """Compose views, method and objective for standardised samples; ``rows`` feed views that look at other samples."""
    live = torch.from_numpy(standardizer.live).to(torch.get_default_dtype())  # standardised, so every live std is 1
    if not bool(live.any()):
        raise UserError("every feature is constant: there is nothing to learn from; give at least one that varies.")
    _check_size(settings, features=live.numel())
    encoder = build_encoder(settings, standardizer.shape)
    return ContrastiveModel(
        pairing=_build_pairing(settings, live, encoder, rows),
        method=_build_method(settings, live, encoder),
        objective=_build_objective(settings),
    )


def _check_size(settings: Settings, *, features: int) -> None:
    """Refuse, before any memory is taken, networks whose weights, gradients and moments cannot fit in it."""
    encoder, noise = settings.encoder, settings.noise
    weights = encoder.hidden * (features + encoder.hidden + encoder.out_features)
    if isinstance(settings.views.noise, PiSettings) and settings.objective.name != "fixed" and noise.generator == "mlp":
        outputs = 2 if noise.mean == "learned" else 1
        weights += noise.hidden * (1 + outputs) * (features + noise.hidden)
    needed, there = 16 * weights / 1e9, memory_gb()  # four numbers of four bytes for every weight
    if there is not None and needed > there:
        raise UserError(
            f"the networks need about {needed:.0f} GB and this machine has {there:.0f}: "
            f"make the hidden layers narrower (encoder.hidden is {encoder.hidden}, noise.hidden is {noise.hidden})."
        )


def build_encoder(settings: Settings, shape: tuple[int, ...]) -> MLPEncoder:
    """Return f_θ, untrained."""
    return MLPEncoder(shape, hidden=settings.encoder.hidden, out_features=settings.encoder.out_features)


def build_noise(settings: Settings, live: Tensor, encoder: nn.Module) -> PiNoise:
    """Return p_ψ(ε|x), untrained; the objective ``fixed`` keeps it at its initial scale."""
    noise = settings.noise
    return PiNoise(
        tuple(live.shape),
        distribution=noise.distribution,
        mean=noise.mean,
        generator="constant" if isinstance(settings.objective, FixedSettings) else noise.generator,
        positive=noise.positive,
        initial_scale=noise.initial_scale,
        feature_scale=live,
        normalize=noise.normalize,
        hidden=noise.hidden,
        encoder=encoder,
    )


def _build_method(settings: Settings, live: Tensor, encoder: MLPEncoder) -> Method:
    head = ProjectionHead(encoder.out_features, hidden=settings.head.hidden, out_features=settings.head.out_features)
    match settings.method:
        case SimCLRSettings(temperature=temperature):
            return SimCLR(encoder, head, temperature=temperature)
        case SimCLSettings(temperature=temperature, strength=strength):
            return SimCL(encoder, head, strength=strength, temperature=temperature)
        case CLAESettings(temperature=temperature, strength=strength, weight=weight):
            return CLAE(encoder, head, feature_scale=live, strength=strength, weight=weight, temperature=temperature)


def _build_objective(settings: Settings) -> Objective:
    if isinstance(settings.objective, FixedSettings):
        return Fixed()
    return Paper(penalty=settings.objective.penalty)


def _build_pairing(settings: Settings, live: Tensor, encoder: nn.Module, rows: Rows) -> Pairing:
    noise: View | None
    match settings.views.noise:
        case PiSettings():
            noise = PiNoiseView(build_noise(settings, live, encoder))
        case NoNoiseSettings():
            noise = None
        case predefined:
            (noise,) = _build_views(predefined, live, rows)
    augmentations = [view for item in settings.views.augmentations for view in _build_views(item, live, rows)]
    name = settings.views.pairing
    if name == "auto":
        name = _auto_pairing(has_noise=noise is not None, has_augmentations=bool(augmentations))
    if name == "identity" and isinstance(settings.method, SimCLRSettings):
        raise UserError("method 'simclr' compares two views: give it a noise (views.noise) or augmentations.")
    return Pairing(name, noise=noise, augmentations=augmentations)


def _auto_pairing(*, has_noise: bool, has_augmentations: bool) -> PairingName:
    if has_augmentations:
        return "sampled"
    return "identity-noise" if has_noise else "identity"


def _build_views(item: Section, live: Tensor, rows: Rows) -> tuple[View, ...]:
    match item:
        case IdentitySettings():
            return (Identity(),)
        case GaussianSettings(sigma=sigma):
            return (GaussianNoise(live, sigma=sigma),)
        case ScarfSettings(rate=rate):
            return (ScarfSwap(_bank(rows, features=live.numel()), rate=rate),)
        case VimeSettings(rate=rate):
            return (VimeSwap(rate=rate),)
        case DACLSettings(alpha=alpha):
            return (Mixup(alpha=alpha),)
        case ModalsSettings():
            return modals(
                ModalsRatios(
                    interpolation=item.interpolation,
                    extrapolation=item.extrapolation,
                    gaussian=item.gaussian,
                    difference=item.difference,
                )
            )
    raise TypeError(f"no view is known for {item!r}")


def _bank(rows: Rows, *, features: int) -> Tensor:
    """A random sample of the training rows, always the same for the same data, as large as memory allows."""
    size = min(len(rows), max(256, _BANK_ENTRIES // features))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    return rows[order[:size].sort().values]
