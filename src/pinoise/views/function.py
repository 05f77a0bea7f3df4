"""A user's own function as a view."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from pinoise.errors import UserError, shown
from pinoise.views.base import Batch, View


class FunctionView(View):
    """A user's own function from a batch of samples to a batch of the same shape, as a view.

    >>> import torch
    >>> FunctionView(lambda x: 2 * x)(Batch(torch.ones(2, 1), torch.arange(2))).x.flatten()
    tensor([2., 2.])
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, batch: Batch) -> Batch:
        """Return the function's output for the samples."""
        moved = self.function(batch.x)
        if not isinstance(moved, Tensor) or moved.shape != batch.x.shape:
            raise UserError(f"the view returned {shown(moved)}: it must return a tensor of {shown(batch.x)}.")
        return batch.moved(moved)
