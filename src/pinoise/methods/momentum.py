"""Networks that slowly follow another network: the key, target and teacher networks of MoCo, BYOL and DINO."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn


def cosine_momentum(step: int, steps: int, base: float) -> float:
    """1 − (1 − base)(1 + cos(π step / steps)) / 2: from ``base`` at the first step to 1 at the end.

    >>> [round(cosine_momentum(step, 10, 0.9), 4) for step in (0, 5, 10)]
    [0.9, 0.95, 1.0]
    """
    done = min(step / max(steps, 1), 1.0)
    return 1 - (1 - base) * (1 + math.cos(math.pi * done)) / 2


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """target ← momentum · target + (1 − momentum) · source for every parameter; buffers are copied.

    The statistics of batch normalisation are not copied, because the source's belong to other weights. The target
    collects its own in its passes in train mode.

    >>> target, source = nn.Linear(1, 1), nn.Linear(1, 1)
    >>> _ = nn.init.zeros_(target.weight), nn.init.ones_(source.weight)
    >>> ema_update(target, source, 0.75)
    >>> target.weight.item()
    0.25
    """
    followers = list(target.parameters())
    if followers:
        get_ema_multi_avg_fn(momentum)(followers, list(source.parameters()), 0)
    for follower, followed in zip(target.modules(), source.modules(), strict=True):
        if not isinstance(follower, nn.modules.batchnorm._BatchNorm):
            for copied, buffer in zip(follower.buffers(recurse=False), followed.buffers(recurse=False), strict=True):
                copied.copy_(buffer)


class Momentum(nn.Module):
    """A copy of networks that run one after the other. Neither gradient nor optimiser reaches it.

    In training it runs in train mode like its source: batch normalisation uses the batch's statistics, and keeps
    running statistics for evaluation.

    Args:
        networks: the networks to copy.

    >>> layer = nn.Linear(2, 3)
    >>> copied = Momentum(layer)
    >>> bool((copied(torch.ones(1, 2)) == layer(torch.ones(1, 2))).all())
    True
    """

    def __init__(self, *networks: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(nn.Sequential(*networks)).requires_grad_(False)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the copy, without gradient."""
        output: Tensor = self.network(x)
        return output

    def follow(self, *networks: nn.Module, momentum: float) -> None:
        """Move the copy towards its source networks."""
        ema_update(self.network, nn.Sequential(*networks), momentum)
