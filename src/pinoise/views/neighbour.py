"""A view that moves a sample to one of its neighbours in the data."""

from __future__ import annotations

from pinoise.noise import NEIGHBOURS, NeighbourCount, Support
from pinoise.views.base import Batch, View
from pinoise.views.site import Site


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

    @classmethod
    def build(cls, site: Site, *, k: NeighbourCount = NEIGHBOURS) -> Neighbour:
        """Return the view among the training rows, with the k nearest as they are."""
        return cls(Support.of(site.rows, k=k, mutual=False))

    @property
    def by_row(self) -> bool:
        """The neighbours are those of the row."""
        return True

    def forward(self, batch: Batch) -> Batch:
        """Return a neighbour of every sample."""
        return batch.moved(self.support.draw(batch.x, rows=batch.rows)[0])
