"""A view that moves a sample to one of its neighbours in the data."""

from __future__ import annotations

from pinoise.noise import Support
from pinoise.views.base import Batch, View


class Neighbour(View):
    """Another sample of the data in the place of x, as in NNCLR (Dwibedi et al., 2021), but near in the input space.

    >>> import torch
    >>> support = Support(torch.tensor([[0.0], [1.0], [7.0]]), numbers=torch.arange(3), rows=3, k=1)
    >>> Neighbour(support)(Batch(torch.tensor([[7.0]]), torch.tensor([2]))).x
    tensor([[1.]])
    """

    def __init__(self, support: Support) -> None:
        super().__init__()
        self.support = support

    @property
    def by_row(self) -> bool:
        """The neighbours are those of the row."""
        return True

    def forward(self, batch: Batch) -> Batch:
        """Return a neighbour of every sample."""
        return batch.moved(self.support.draw(batch.x, rows=batch.rows)[0])
