"""ℓ(x; θ) with the heads that each method has."""

from __future__ import annotations

from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import BYOL, CLAE, DINO, MemoryBank, Method, MoCo, SimCL, SimCLR, SimSiam
from pinoise.methods.processes import world_size
from pinoise.networks import BatchNormHead, PredictionHead, ProjectionHead, PrototypeHead, SimSiamHead
from pinoise.training.settings import (
    BYOLSettings,
    CLAESettings,
    DINOSettings,
    MemoryBankSettings,
    MoCoSettings,
    Settings,
    SimCLRSettings,
    SimCLSettings,
    SimSiamSettings,
)


def build_method(settings: Settings, unit: Tensor, encoder: nn.Module, *, rows: int) -> Method:
    """Return the method, with fresh heads on the encoder.

    Args:
        settings: the sections ``method`` and ``head``.
        unit: the standard deviation of every standardised feature, shape (*shape).
        encoder: f_θ.
        rows: the number of training rows.
    """
    features: int = encoder.out_features  # type: ignore[assignment]
    hidden, out = settings.head.hidden, settings.head.out_features
    head = ProjectionHead(features, hidden=hidden, out_features=out)
    match settings.method:
        case SimCLRSettings(temperature=temperature):
            return SimCLR(encoder, head, temperature=temperature)
        case SimCLSettings(temperature=temperature, strength=strength):
            return SimCL(encoder, head, strength=strength, temperature=temperature)
        case CLAESettings(temperature=temperature, strength=strength, weight=weight):
            return CLAE(encoder, head, feature_scale=unit, strength=strength, weight=weight, temperature=temperature)
        case MoCoSettings(temperature=temperature, momentum=momentum, queue=queue):
            _check_queue(queue, rows=world_size() * min(settings.training.batch_size, rows // world_size()))
            return MoCo(encoder, head, temperature=temperature, momentum=momentum, queue=queue)
        case MemoryBankSettings(temperature=temperature, momentum=momentum, negatives=negatives):
            return MemoryBank(encoder, head, rows=rows, temperature=temperature, momentum=momentum, negatives=negatives)
        case BYOLSettings(momentum=momentum):
            normed = BatchNormHead(features, hidden=hidden, out_features=out)
            return BYOL(encoder, normed, PredictionHead(out, hidden=hidden), momentum=momentum)
        case SimSiamSettings():
            deep = SimSiamHead(features, hidden=hidden, out_features=out)
            return SimSiam(encoder, deep, PredictionHead(out))
        case DINOSettings() as dino:
            return DINO(
                encoder,
                PrototypeHead(features, hidden=hidden, bottleneck=out, prototypes=dino.prototypes),
                temperature=dino.temperature,
                teacher_temperature=dino.teacher_temperature,
                momentum=dino.momentum,
                centre_momentum=dino.centre_momentum,
            )


def _check_queue(queue: int, *, rows: int) -> None:
    """Say at once what would else be said in the first step, which takes so many rows over all processes."""
    if queue < 2 * rows:
        raise UserError(
            f"method.queue is {queue} and a step brings {2 * rows} keys, two for each of {rows} rows: "
            "make the queue larger or training.batch_size smaller."
        )
