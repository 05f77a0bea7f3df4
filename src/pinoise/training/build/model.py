"""The whole model: views, method and objective, for samples of a given shape."""

from __future__ import annotations

import torch

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.noise import build_generator
from pinoise.training.build.methods import build_method
from pinoise.training.build.networks import build_encoder, feature_scale
from pinoise.training.build.noise import build_objective
from pinoise.training.build.views import build_pairing
from pinoise.training.environment import memory_gb
from pinoise.training.model import ContrastiveModel
from pinoise.training.settings import MLPSettings, PiSettings, Settings, noise_defaults


def build_model(
    settings: Settings, standardizer: Standardizer, rows: Rows, *, pretrained: bool = False
) -> ContrastiveModel:
    """Compose views, method and objective for standardised samples.

    Args:
        settings: the whole configuration.
        standardizer: of the samples.
        rows: the training samples, for views that look at others.
        pretrained: whether the encoder starts from the file of weights that the settings may name.
    """
    unit = feature_scale(standardizer)
    if not bool(unit.any()):
        raise UserError("every feature is constant: there is nothing to learn from; give at least one that varies.")
    _check_size(settings, standardizer.shape)
    encoder = build_encoder(settings, standardizer.shape, pretrained=pretrained)
    pairing = build_pairing(settings, standardizer, encoder, rows)
    return ContrastiveModel(
        pairing=pairing,
        method=build_method(settings, unit, encoder, rows=len(rows)),
        objective=build_objective(settings, None if pairing.noise is None else pairing.noise.learned),
    )


def _check_size(settings: Settings, shape: tuple[int, ...]) -> None:
    """Refuse, before any memory is taken, networks whose weights, gradients and moments cannot fit in it."""
    noise = settings.noise
    with torch.device("meta"):  # sizes alone
        networks = []
        if isinstance(settings.encoder, MLPSettings):
            networks.append(build_encoder(settings, shape))
        name = noise_defaults(settings).generator
        if isinstance(settings.views.noise, PiSettings) and name not in ("shared", "module"):
            outputs = 2 if noise.mean == "learned" else 1
            networks.append(build_generator(name, shape, outputs=outputs, hidden=noise.hidden, width=noise.width))
    weights = sum(weight.numel() for network in networks for weight in network.parameters())
    needed, there = 16 * weights / 1e9, memory_gb()  # four numbers of four bytes for every weight
    if there is not None and needed > there:
        raise UserError(
            f"the networks need about {needed:.0f} GB and this machine has {there:.0f}: make them narrower "
            "(encoder.hidden or encoder.width, noise.hidden or noise.width)."
        )
