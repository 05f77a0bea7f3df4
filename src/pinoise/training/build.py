"""From settings and the shape of the data to the model that is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.information import mutual_information
from pinoise.methods import CLAE, Method, SimCL, SimCLR
from pinoise.networks import Embedding, EmbeddingName, MLPEncoder, ProjectionHead
from pinoise.noise import Adversarial, Fixed, Information, Objective, Paper, PiNoise, Support, Supported, prior_scale
from pinoise.training.environment import memory_gb
from pinoise.training.model import ContrastiveModel
from pinoise.training.settings import (
    AdversarialSettings,
    CLAESettings,
    DACLSettings,
    FixedSettings,
    GaussianSettings,
    IdentitySettings,
    InformationSettings,
    ModalsSettings,
    NeighbourSettings,
    NoNoiseSettings,
    PaperSettings,
    PiSettings,
    ScarfSettings,
    Section,
    Settings,
    SimCLRSettings,
    SimCLSettings,
    SupportedSettings,
    ViewmakerSettings,
    VimeSettings,
    noise_defaults,
)
from pinoise.views import (
    GaussianNoise,
    Identity,
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

# Enough rows to stand for the marginals of every feature, at no more than 64 MB.
_BANK_ENTRIES = 1 << 24

# Rows among which neighbours are searched: their number bounds what the search adds to a step, however many rows.
SUPPORT_ROWS = 2048

# Up to so many rows, finding everyone's neighbours whenever σ has moved costs less than searching in every step.
TABLE_ROWS = 16_384


def build_model(settings: Settings, standardizer: Standardizer, rows: Rows) -> ContrastiveModel:
    """Compose views, method and objective for standardised samples; ``rows`` feed views that look at other samples."""
    unit = feature_scale(standardizer)
    if not bool(unit.any()):
        raise UserError("every feature is constant: there is nothing to learn from; give at least one that varies.")
    _check_size(settings, features=unit.numel())
    encoder = build_encoder(settings, standardizer.shape)
    pairing = _build_pairing(settings, unit, encoder, rows)
    return ContrastiveModel(
        pairing=pairing,
        method=_build_method(settings, unit, encoder),
        objective=_build_objective(settings, None if pairing.noise is None else pairing.noise.learned),
    )


def _check_size(settings: Settings, *, features: int) -> None:
    """Refuse, before any memory is taken, networks whose weights, gradients and moments cannot fit in it."""
    encoder, noise = settings.encoder, settings.noise
    weights = encoder.hidden * (features + encoder.hidden + encoder.out_features)
    if isinstance(settings.views.noise, PiSettings) and noise_defaults(settings).generator == "mlp":
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


def build_embedding(encoder: nn.Module, name: EmbeddingName) -> Embedding:
    """Return what users get for a sample, from an encoder."""
    return Embedding(encoder, name=name)


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
    generator, positive = noise_defaults(settings)
    initial = noise.initial_scale if initial_scale is None else initial_scale
    if initial is None and support is not None:
        # w of uniform noise on (−w, w) is √3 times its standard deviation.
        initial = prior_scale(support.spread(), unit) * (math.sqrt(3) if noise.distribution == "uniform" else 1)
    return PiNoise(
        tuple(unit.shape),
        distribution=noise.distribution,
        mean=noise.mean,
        generator=generator,
        positive=positive,
        initial_scale=1.0 if initial is None else initial,
        feature_scale=unit,
        normalize=noise.normalize,
        hidden=noise.hidden,
        encoder=encoder,
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


def feature_scale(standardizer: Standardizer) -> Tensor:
    """The standard deviation of every standardised feature, the unit of noise; 0 for dead features."""
    return torch.from_numpy(standardizer.deviation).to(torch.get_default_dtype())


def build_support(rows: Rows, *, neighbours: int, mutual: bool = True) -> Support:
    """Return the rows among which neighbours are searched: all of them, or a sample of many."""
    bank, numbers = _bank(rows, most=SUPPORT_ROWS)
    fetch = rows.__getitem__ if len(numbers) < len(rows) <= TABLE_ROWS else None
    return Support(bank, numbers=numbers, rows=len(rows), k=neighbours, mutual=mutual, fetch=fetch)


def _build_method(settings: Settings, unit: Tensor, encoder: MLPEncoder) -> Method:
    head = ProjectionHead(encoder.out_features, hidden=settings.head.hidden, out_features=settings.head.out_features)
    match settings.method:
        case SimCLRSettings(temperature=temperature):
            return SimCLR(encoder, head, temperature=temperature)
        case SimCLSettings(temperature=temperature, strength=strength):
            return SimCL(encoder, head, strength=strength, temperature=temperature)
        case CLAESettings(temperature=temperature, strength=strength, weight=weight):
            return CLAE(encoder, head, feature_scale=unit, strength=strength, weight=weight, temperature=temperature)


def _build_objective(settings: Settings, noise: PiNoise | None) -> Objective:
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


def _build_pairing(settings: Settings, unit: Tensor, encoder: nn.Module, rows: Rows) -> Pairing:
    noise: View | None
    match settings.views.noise:
        case PiSettings():
            noise = PiNoiseView(build_noise(settings, unit, encoder, support=_support_of(settings, rows)))
        case NoNoiseSettings():
            noise = None
        case predefined:
            (noise,) = _build_views(predefined, unit, rows, hidden=settings.noise.hidden)
    augmentations = [
        view
        for item in settings.views.augmentations
        for view in _build_views(item, unit, rows, hidden=settings.noise.hidden)
    ]
    name = settings.views.pairing
    if name == "auto":
        name = _auto_pairing(settings, noise, has_augmentations=bool(augmentations))
    if name == "identity" and isinstance(settings.method, SimCLRSettings):
        raise UserError("method 'simclr' compares two views: give it a noise (views.noise) or augmentations.")
    return Pairing(name, noise=noise, augmentations=augmentations)


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
    (view,) = _build_views(item, feature_scale(standardizer), rows, hidden=settings.noise.hidden)
    return view


def _build_views(item: Section, unit: Tensor, rows: Rows, *, hidden: int) -> tuple[View, ...]:
    match item:
        case IdentitySettings():
            return (Identity(),)
        case GaussianSettings(sigma=sigma):
            return (GaussianNoise(unit, sigma=sigma),)
        case ScarfSettings(rate=rate):
            return (ScarfSwap(_bank(rows)[0], rate=rate),)
        case VimeSettings(rate=rate):
            return (VimeSwap(rate=rate),)
        case DACLSettings(alpha=alpha):
            return (Mixup(alpha=alpha),)
        case NeighbourSettings(k=k):
            return (Neighbour(build_support(rows, neighbours=k, mutual=False)),)
        case ViewmakerSettings(budget=budget):
            return (Viewmaker(unit, budget=budget, hidden=hidden),)
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


def _bank(rows: Rows, *, most: int | None = None) -> tuple[Tensor, Tensor]:
    """Return random training rows, always the same for the same data, and their row numbers, as memory allows."""
    features = rows[torch.arange(1)].numel()
    size = min(len(rows), max(256, _BANK_ENTRIES // features), most or len(rows))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    numbers = order[:size].sort().values
    return rows[numbers], numbers
