"""What one forward pass costs, counted as the paper's tables count it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.flop_counter import FlopCounterMode

from pinoise.networks.blocks import evaluating


class Operations(NamedTuple):
    """Operations of one forward pass."""

    multiply_accumulates: int
    normalisation: int

    @property
    def total(self) -> int:
        """Both together: what the paper's cost tables call FLOPs."""
        return self.multiply_accumulates + self.normalisation


def count_operations(module: nn.Module, x: Tensor) -> Operations:
    """Count the operations of ``module(x)``, run once in evaluation mode and without gradient.

    ``multiply_accumulates`` is what torch counts: the products of convolutions, linear layers and attention. (torch
    reports twice as many, because it counts the multiplication and the addition.) ``normalisation`` is what the
    paper's tables have beside them: they agree to three digits with 4 operations for every element that passes
    through a normalisation with a learned scale and shift, 2 without, which is the rule of the tool ``thop``. For one
    image of CIFAR-10 and a learned mean, the 5.63e8 products of a ResNet18 so become 5.65e8, and the 1.31e9 of a
    ResNet50 become 1.32e9, the paper's figures. Activations, pooling, biases and shortcuts count nothing here;
    ``thop`` counts the pooling of these, some thousand operations.

    Layers of normalisation are found wherever they run, also in an encoder that the module refers to without owning it;
    calls of ``torch.nn.functional`` are not seen. On the meta device nothing is computed, and the count is the same.

    >>> count_operations(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)), torch.zeros(1, 1, 3, 3))
    Operations(multiply_accumulates=18, normalisation=72)
    """
    normalisation = 0

    def add(layer: nn.Module, _: object, out: object) -> None:
        nonlocal normalisation
        if isinstance(layer, (_NormBase, nn.GroupNorm, nn.LayerNorm)) and isinstance(out, Tensor):
            affine = layer.elementwise_affine if isinstance(layer, nn.LayerNorm) else layer.affine
            normalisation += (4 if affine else 2) * out.numel()

    handle = register_module_forward_hook(add)
    try:
        with evaluating(module), torch.no_grad(), FlopCounterMode(display=False) as counter:
            module(x)
    finally:
        handle.remove()
    return Operations(counter.get_total_flops() // 2, normalisation)
