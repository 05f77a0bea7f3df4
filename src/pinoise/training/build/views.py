"""𝒜 and how its views are paired."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.noise import Support
from pinoise.training.build.background import masks_of
from pinoise.training.build.networks import feature_scale
from pinoise.training.build.noise import bank_of, build_noise, build_support
from pinoise.training.settings import (
    BackgroundSettings,
    BYOLPipelineSettings,
    CLAESettings,
    CropSettings,
    DACLSettings,
    GaussianSettings,
    IdentitySettings,
    ModalsSettings,
    NeighbourSettings,
    NoNoiseSettings,
    PiSettings,
    ScarfSettings,
    Section,
    Settings,
    SimCLRPipelineSettings,
    SimCLSettings,
    SupportedSettings,
    ViewmakerSettings,
    VimeSettings,
    ViTSettings,
)
from pinoise.views import (
    IMAGE_PRESETS,
    BackgroundNoise,
    GaussianNoise,
    Identity,
    ImagePipeline,
    LocalCrops,
    Mixup,
    ModalsRatios,
    Neighbour,
    Pairing,
    PairingName,
    PiNoiseView,
    ScarfSwap,
    View,
    Viewmaker,
    VimeSwap,
    modals,
)

# Beside local crops, a crop keeps at least this share of an image, more than any of these has.
_GLOBAL_AREA = (0.4, 1.0)


def build_pairing(settings: Settings, standardizer: Standardizer, encoder: nn.Module, rows: Rows) -> Pairing:
    """Return the pairing; the encoder is for noise that shares its features, rows for views that look at others."""
    noise: View | None
    match settings.views.noise:
        case PiSettings():
            support = _support_of(settings, rows)
            noise = PiNoiseView(build_noise(settings, feature_scale(standardizer), encoder, support=support))
        case NoNoiseSettings():
            noise = None
        case predefined:
            noise = build_view(predefined, settings, standardizer, rows)
    augmentations = [
        view for item in settings.views.augmentations for view in _build_views(item, settings, standardizer, rows)
    ]
    name = settings.views.pairing
    if name == "auto":
        name = _auto_pairing(settings, noise, has_augmentations=bool(augmentations))
    if name == "identity" and not isinstance(settings.method, SimCLSettings | CLAESettings):
        raise UserError(
            f"method {settings.method.name!r} compares two views: give it a noise (views.noise) or augmentations."
        )
    local = _local_crops(settings, standardizer) if settings.views.local_crops else None
    return Pairing(name, noise=noise, augmentations=augmentations, local=local, local_views=settings.views.local_crops)


def _auto_pairing(settings: Settings, noise: View | None, *, has_augmentations: bool) -> PairingName:
    if has_augmentations:
        return "sampled"
    if noise is None:
        return "identity"
    learned = noise.learned is not None and isinstance(settings.objective, SupportedSettings)
    return "noise-noise" if learned else "identity-noise"


def _support_of(settings: Settings, rows: Rows) -> Support | None:
    if not isinstance(settings.objective, SupportedSettings) or not settings.objective.neighbours:
        return None
    return build_support(rows, neighbours=settings.objective.neighbours)


def build_view(item: Section, settings: Settings, standardizer: Standardizer, rows: Rows) -> View:
    """Return a predefined view for standardised samples."""
    (view,) = _build_views(item, settings, standardizer, rows)
    return view


def _build_views(item: Section, settings: Settings, standardizer: Standardizer, rows: Rows) -> tuple[View, ...]:
    unit = feature_scale(standardizer)
    match item:
        case SimCLRPipelineSettings(name=name, strength=strength) | BYOLPipelineSettings(name=name, strength=strength):
            return (_pipeline(name, settings, standardizer, strength=strength),)
        case CropSettings(name=name):
            return (_pipeline(name, settings, standardizer, strength=0.0),)
        case BackgroundSettings(sigma=sigma):
            masks = torch.from_numpy(masks_of(item, standardizer, rows, device=settings.training.device))
            return (BackgroundNoise(unit, masks, rows=len(rows), sigma=sigma),)
        case IdentitySettings():
            return (Identity(),)
        case GaussianSettings(sigma=sigma):
            return (GaussianNoise(unit, sigma=sigma),)
        case ScarfSettings(rate=rate):
            return (ScarfSwap(bank_of(rows)[0], rate=rate),)
        case VimeSettings(rate=rate):
            return (VimeSwap(rate=rate),)
        case DACLSettings(alpha=alpha):
            return (Mixup(alpha=alpha),)
        case NeighbourSettings(k=k):
            return (Neighbour(build_support(rows, neighbours=k, mutual=False)),)
        case ViewmakerSettings(budget=budget):
            return (Viewmaker(unit, budget=budget, hidden=settings.noise.hidden),)
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


def _pipeline(name: str, settings: Settings, standardizer: Standardizer, *, strength: float) -> View:
    preset = IMAGE_PRESETS[name]
    if settings.views.local_crops:
        preset = preset._replace(area=_GLOBAL_AREA)
    mean, scale = _pixel_units(standardizer)
    return ImagePipeline(preset, standardizer.shape, mean=mean, scale=scale, strength=strength)


def _local_crops(settings: Settings, standardizer: Standardizer) -> View:
    """Crops with the colours of the first pipeline, of a size that the encoder's patches divide."""
    mean, scale = _pixel_units(standardizer)
    coloured = (SimCLRPipelineSettings, BYOLPipelineSettings)
    chosen = next((item for item in settings.views.augmentations if isinstance(item, coloured)), None)
    return LocalCrops(
        "crop" if chosen is None else chosen.name,
        standardizer.shape,
        mean=mean,
        scale=scale,
        strength=0.0 if chosen is None else chosen.strength,
        multiple=settings.encoder.patch if isinstance(settings.encoder, ViTSettings) else 1,
    )


def _pixel_units(standardizer: Standardizer) -> tuple[Tensor, Tensor]:
    """Return, for each channel, the mean and scale that take a standardised pixel to the range from 0 to 1."""
    first = (slice(None), 0, 0)  # all pixels of a channel have the same
    mean, scale = standardizer.mean[first] / standardizer.white, standardizer.scale[first] / standardizer.white
    return torch.from_numpy(mean).float(), torch.from_numpy(scale).float()
