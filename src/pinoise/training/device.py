"""The machine that trains: device, precision and processes, through Lightning Fabric."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning_fabric import Fabric

from pinoise.errors import UserError, unknown_choice
from pinoise.training.settings import TrainingSettings

DEVICES = ("auto", "cpu", "cuda", "mps")


def check_device(device: str) -> str:
    """Return the device's name, or say why it cannot be used.

    >>> check_device("cpu")
    'cpu'
    """
    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise unknown_choice("device", device, DEVICES)
    absent = {"cuda": not torch.cuda.is_available(), "mps": not torch.backends.mps.is_available()}
    if absent.get(kind, False):
        raise UserError(f"device {device!r} was asked for and this machine has none: use 'cpu' or 'auto'.")
    return kind


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Let the CPU treat numbers below 1e-38 as 0 for a while.

    Moments of the optimiser decay into such numbers where gradients have vanished, as in a collapsed generator, and
    slow a step down. It holds for the calling thread and for worker threads that start later, so enter it early.

    >>> with flushed_denormals():
    ...     bool(torch.tensor(1e-39) * 0.5 == 0)
    True
    """
    flushed_before = bool(torch.tensor(1e-39) * 0.5 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)


def make_fabric(settings: TrainingSettings) -> Fabric:
    """Return the Fabric for these settings; under ``torchrun`` it joins the processes that are there."""
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    return Fabric(
        accelerator=check_device(settings.device),
        devices=settings.devices,
        num_nodes=settings.nodes,
        precision=settings.precision,
    )
