"""What the image networks and their users share: the checks of an image, and reading a network as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from pinoise.errors import UserError


def image_shape(shape: Sequence[int], *, owner: str) -> tuple[int, int, int]:
    """Return the shape of one image (C, H, W), or refuse what is none.

    >>> image_shape((3, 8, 8), owner="a ResNet")
    (3, 8, 8)
    """
    if len(shape) != 3 or any(size < 1 for size in shape):
        raise UserError(f"{owner} takes images, (channels, height, width): one sample has shape {tuple(shape)}.")
    channels, height, width = shape
    return channels, height, width


def check_images(x: Tensor, channels: int, *, owner: str) -> None:
    """Refuse a batch that is not images of so many channels."""
    if x.ndim != 4 or x.shape[1] != channels:
        raise UserError(
            f"{owner} was made for images of {channels} {'channel' if channels == 1 else 'channels'}, "
            f"(m, {channels}, height, width): it was given a tensor of shape {tuple(x.shape)}."
        )


def check_width(width: int, *, owner: str, name: str = "width") -> None:
    """Refuse a size of a network that is below 1."""
    if width < 1:
        raise UserError(f"{name} of {owner} is {width}: it must be at least 1.")


def has_batch_norm(network: nn.Module) -> bool:
    """Whether some part normalises over the batch.

    >>> has_batch_norm(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))), has_batch_norm(nn.Linear(2, 2))
    (True, False)
    """
    return any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in network.modules())


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Hold a module in evaluation mode: no batch statistics are used or changed; each part gets its own mode back.

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
    """Look at what a network makes of x without gradient, without batch statistics, and without a trace.

    Weights that autocast rounded here have no gradient, and some versions of torch would use them again in training.
    """
    with torch.no_grad(), evaluating(network):
        yield
    if torch.amp.is_autocast_available(x.device.type) and torch.is_autocast_enabled(x.device.type):
        torch.clear_autocast_cache()


@contextmanager
def frozen_statistics(network: nn.Module) -> Iterator[None]:
    """Let batch normalisation use the statistics of a batch, as its mode says, but remember nothing of them.

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
    """Give batch normalisation the statistics of samples, as an encoder that was never trained has none of its own.

    A network without batch normalisation is left as it is, and no batch is asked for.

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
