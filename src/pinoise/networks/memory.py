"""The memory that autograd keeps between a forward and a backward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


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

    >>> import torch
    >>> layer, x = torch.nn.Linear(3, 2), torch.ones(5, 3)
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
