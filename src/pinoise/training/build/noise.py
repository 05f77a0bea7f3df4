"""p_ψ(ε|x) from settings and the units of the data: untrained, or from its stored tensors."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.networks import check_finite_weights, load_weights
from pinoise.noise import NEIGHBOURS, Columns, PiNoise, Support, make_generator
from pinoise.training.build.networks import channels_together
from pinoise.training.config import Settings, looks_at_neighbours, noise_defaults


def feature_scale(standardizer: Standardizer) -> Tensor:
    """The standard deviation of every standardised feature, the unit of noise; 0 for dead features."""
    return torch.from_numpy(standardizer.deviation).to(torch.get_default_dtype())


def columns_of(standardizer: Standardizer) -> Columns | None:
    """The columns of a table, if any of them became several features."""
    return Columns(len(standardizer.mean), standardizer.spans) if standardizer.spans else None


def build_noise(
    settings: Settings,
    unit: Tensor,
    encoder: nn.Module,
    *,
    support: Support | None = None,
    initial_scale: float | Tensor | None = None,
    columns: Columns | None = None,
    donors: Tensor | None = None,
) -> PiNoise:
    """Return untrained p_ψ(ε|x). If the objective learns no noise, the scale stays at its initial value.

    Args:
        settings: the sections ``noise`` and ``objective``.
        unit: the standard deviation of every standardised feature, 0 for dead ones, shape (*shape).
        encoder: the encoder, for a generator that reads its features.
        support: the training rows to which noise moves samples.
        initial_scale: the initial σ; None takes the value in the settings.
        columns: the columns that became several features.
        donors: rows to take such columns from, if there is no support.
    """
    noise, (generator, positive, covariance) = settings.noise, noise_defaults(settings)
    shape, outputs = tuple(unit.shape), 2 if noise.mean == "learned" else 1
    part = copy.deepcopy(generator.part).float() if isinstance(generator.part, nn.Module) else generator.part
    made = make_generator(part, shape, outputs, encoder=encoder, options=generator.options)
    shared = {id(parameter) for parameter in encoder.parameters()}
    if any(id(parameter) in shared for parameter in made.parameters()):
        raise UserError(
            f"generator {generator.name!r} registers the encoder, whose weights would then count as noise: "
            "keep it in a tuple, as in self._encoder = (encoder,)."
        )
    return PiNoise(
        shape,
        distribution=noise.distribution,
        mean=noise.mean,
        generator=channels_together(made),
        positive=positive,
        initial_scale=noise.initial_scale if initial_scale is None else initial_scale,
        feature_scale=unit,
        normalize=noise.normalize,
        support=support,
        covariance=covariance,
        amplitude=noise.amplitude if initial_scale is None else None,  # a stored scale has it already
        moves=settings.neighbours > 0,
        columns=columns,
        donors=donors,
    )


def support_neighbours(settings: Settings) -> int:
    """Return how many neighbours each row of the noise's support has; 0 if the noise needs no support.

    >>> support_neighbours(Settings()), support_neighbours(Settings.model_validate({"objective": "paper"}))
    (10, 0)
    """
    return settings.neighbours or (NEIGHBOURS if looks_at_neighbours(settings) else 0)


def restore_noise(
    settings: Settings, standardizer: Standardizer, encoder: nn.Module, tensors: Mapping[str, Tensor]
) -> PiNoise:
    """Return trained noise from its stored tensors. Tensors that do not fit raise torch's RuntimeError."""
    # Noise is built from these, so that comparing with what was built would not find them broken.
    own = {name: tensor for name, tensor in tensors.items() if not name.startswith("generator.")}
    check_finite_weights(own, where="the noise")
    support = None
    if (bank := tensors.get("support.bank")) is not None:
        total = tensors.get("support.total", torch.tensor(0))
        if not bank.is_floating_point() or bank.shape[1:] != standardizer.shape or not len(bank) or total.shape != ():
            raise RuntimeError("the support has another shape than the samples")
        support = Support(
            bank, numbers=torch.arange(len(bank)), rows=int(total), k=max(1, support_neighbours(settings))
        )
    initial = tensors.get("initial_scale", 1.0)
    noise = build_noise(
        settings,
        feature_scale(standardizer),
        encoder,
        support=support,
        initial_scale=initial,
        columns=columns_of(standardizer),
        donors=_sound_donors(tensors.get("donors"), standardizer),
    )
    load_weights(noise, tensors, where="the noise")
    return noise.eval()


def _sound_donors(donors: Tensor | None, standardizer: Standardizer) -> Tensor | None:
    if donors is not None and (donors.shape[1:] != standardizer.shape or not donors.is_floating_point()):
        raise RuntimeError("the rows for its columns have another shape than the samples")
    return donors
