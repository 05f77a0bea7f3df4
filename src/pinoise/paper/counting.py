"""What a step does and keeps: operations, counted as in the paper's tables, and the memory of autograd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.flop_counter import FlopCounterMode

from pinoise.modes import evaluating


class Operations(NamedTuple):
    """Operations of one or more passes."""

    multiply_accumulates: int
    normalisation: int

    @property
    def total(self) -> int:
        """The sum of both, which the paper's cost tables call FLOPs."""
        return self.multiply_accumulates + self.normalisation

    def plus(self, other: Operations, times: int = 1) -> Operations:
        """Return these operations and a number of times those of another pass.

        >>> Operations(5, 2).plus(Operations(1, 1), -1)
        Operations(multiply_accumulates=4, normalisation=1)
        """
        return Operations(*(own + times * its for own, its in zip(self, other, strict=True)))


class Tally:
    """The operations that a block has done so far."""

    def __init__(self) -> None:
        self._products = FlopCounterMode(display=False)
        self._normalisation = 0

    @property
    def operations(self) -> Operations:
        """Multiply-accumulates, of backward passes too, and the operations of normalisation in forward passes."""
        return Operations(self._products.get_total_flops() // 2, self._normalisation)

    def _add(self, layer: nn.Module, _: object, out: object) -> None:
        if isinstance(layer, (_NormBase, nn.GroupNorm, nn.LayerNorm)) and isinstance(out, Tensor):
            affine = layer.elementwise_affine if isinstance(layer, nn.LayerNorm) else layer.affine
            self._normalisation += (4 if affine else 2) * out.numel()

    @contextmanager
    def _counting(self) -> Iterator[Tally]:
        handle = register_module_forward_hook(self._add)
        try:
            with self._products:
                yield self
        finally:
            handle.remove()


def counting() -> AbstractContextManager[Tally]:
    """Count the operations of a block as ``count_operations`` does those of a module.

    >>> with counting() as tally:
    ...     loss = nn.Linear(3, 2)(torch.ones(5, 3)).sum()
    ...     forward = tally.operations.total
    ...     loss.backward()
    >>> forward, tally.operations.total
    (30, 60)
    """
    return Tally()._counting()


def count_operations(module: nn.Module, x: Tensor) -> Operations:
    """Count the operations of ``module(x)``, run once in evaluation mode and without gradient.

    ``multiply_accumulates`` is torch's count: the products of convolutions, linear layers and attention. (torch reports
    twice this number, because it counts multiplication and addition separately.) ``normalisation`` is 4 operations for
    every element that passes through a normalisation with a learned scale and shift, and 2 without them. This is the
    rule of the tool ``thop``. With it the totals agree with the paper's tables to three digits: for one image of
    CIFAR-10 and a learned mean, the 5.63e8 products of a ResNet18 become 5.65e8, and the 1.31e9 of a ResNet50 become
    1.32e9, the paper's figures. Activations, pooling, biases and shortcuts are not counted. ``thop`` also counts
    pooling, a few thousand operations.

    Normalisation layers are found wherever they run, also in an encoder that the module refers to without owning it.
    Calls of ``torch.nn.functional`` are not seen. On the meta device nothing is computed, and the count is the same.

    >>> count_operations(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)), torch.zeros(1, 1, 3, 3))
    Operations(multiply_accumulates=18, normalisation=72)
    """
    with counting() as tally, evaluating(module), torch.no_grad():
        module(x)
    return tally.operations


class SavedMemory:
    """Bytes that autograd keeps, every piece of memory counted once, now and at most."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0
        self._keepers: Counter[int] = Counter()

    def keep(self, place: int, size: int) -> None:
        """Count one more tensor in a piece of memory."""
        if not self._keepers[place]:
            self.now += size
            self.peak = max(self.peak, self.now)
        self._keepers[place] += 1

    def release(self, place: int, size: int) -> None:
        """Count one tensor less. The last one frees the memory."""
        self._keepers[place] -= 1
        if not self._keepers[place]:
            self.now -= size


class _Kept:
    """A tensor that autograd keeps. It is released with the graph that it belongs to."""

    def __init__(self, tensor: Tensor, memory: SavedMemory) -> None:
        self.tensor = tensor
        self._memory = memory
        self._where = place_of(tensor), tensor.untyped_storage().nbytes()
        memory.keep(*self._where)

    def __del__(self) -> None:
        self._memory.release(*self._where)


def place_of(tensor: Tensor) -> int:
    """Return a number of the memory that a tensor views, which no other living tensor has unless it views it, too."""
    place: int = tensor.untyped_storage()._cdata
    return place


@contextmanager
def counting_saved(weights: Iterable[Tensor] = ()) -> Iterator[SavedMemory]:
    """Count the memory that autograd keeps for backward passes in a block. ``weights`` exist anyway and are left out.

    >>> layer, x = nn.Linear(3, 2), torch.ones(5, 3)
    >>> with counting_saved(layer.parameters()) as saved:
    ...     loss = layer(x).tanh().square().sum()
    >>> saved.peak  # x (5 × 3 numbers), and tanh (5 × 2), which both later operations need
    100
    """
    memory, known = SavedMemory(), {place_of(weight) for weight in weights}

    def pack(tensor: Tensor) -> _Kept | Tensor:
        return tensor if place_of(tensor) in known else _Kept(tensor, memory)

    def unpack(kept: _Kept | Tensor) -> Tensor:
        return kept.tensor if isinstance(kept, _Kept) else kept

    with saved_tensors_hooks(pack, unpack):
        yield memory
