"""Helpers of the networks: checks of images and sizes, and control of evaluation mode and batch statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from pinoise.errors import UserError


def image_shape(shape: Sequence[int], *, owner: str) -> tuple[int, int, int]:
    """Return the shape (C, H, W) of one image. Refuse any other shape.

    >>> image_shape((3, 8, 8), owner="a ResNet")
    (3, 8, 8)
    """
    if len(shape) != 3 or any(size < 1 for size in shape):
        raise UserError(f"{owner} takes images, (channels, height, width): one sample has shape {tuple(shape)}.")
    channels, height, width = shape
    return channels, height, width


def check_images(x: Tensor, channels: int, *, owner: str) -> None:
    """Refuse a batch whose shape is not (m, channels, height, width)."""
    if x.ndim != 4 or x.shape[1] != channels:
        raise UserError(
            f"{owner} was made for images of {channels} {'channel' if channels == 1 else 'channels'}, "
            f"(m, {channels}, height, width): it was given a tensor of shape {tuple(x.shape)}."
        )


def check_width(width: int, *, owner: str, name: str = "width") -> None:
    """Refuse a network size below 1."""
    if width < 1:
        raise UserError(f"{name} of {owner} is {width}: it must be at least 1.")


def has_batch_norm(network: nn.Module) -> bool:
    """Whether the network contains batch normalisation.

    >>> has_batch_norm(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))), has_batch_norm(nn.Linear(2, 2))
    (True, False)
    """
    return any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in network.modules())


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode, and restore the mode of every part afterwards.

    Batch normalisation then neither uses the statistics of a batch nor changes its running statistics.

    >>> norm = nn.BatchNorm1d(2)
    >>> with evaluating(norm):
    ...     norm.training
    False
    >>> norm.training
    True
    """
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def without_trace(network: nn.Module, x: Tensor) -> Iterator[None]:
    """Run a network on x without gradient and in evaluation mode, and leave nothing in autocast's cache.

    Weights that autocast rounds here have no gradient. Some versions of torch would reuse them in training.
    """
    with torch.no_grad(), evaluating(network):
        yield
    if torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type):
        torch.clear_autocast_cache()


@contextmanager
def frozen_statistics(network: nn.Module) -> Iterator[None]:
    """Keep batch normalisation from updating its running statistics. In train mode it still normalises by the batch.

    >>> norm = nn.BatchNorm1d(1)
    >>> with frozen_statistics(norm):
    ...     norm(torch.tensor([[1.0], [3.0]])).round().flatten().tolist()
    [-1.0, 1.0]
    >>> norm.running_mean, norm.num_batches_tracked
    (tensor([0.]), tensor(0))
    """
    norms = [part for part in network.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    tracking = [norm for norm in norms if norm.track_running_stats]
    for norm in tracking:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in tracking:
            norm.track_running_stats = True


@torch.no_grad()
def settle_statistics(network: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set the running statistics of batch normalisation to their mean over batches. An untrained encoder needs this.

    A network without batch normalisation is left as it is, and no batch is read.

    >>> norm = nn.BatchNorm1d(1)
    >>> settle_statistics(norm, [torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [7.0]])])
    >>> norm.running_mean, norm.training
    (tensor([4.]), True)
    """
    norms = [part for part in network.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    before = [(part, part.training) for part in network.modules()]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over all batches
    network.train()
    try:
        for batch in batches:
            network(batch)
    finally:
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum
        for part, training in before:
            part.training = training
