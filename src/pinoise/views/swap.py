"""Views that replace a sample, or some of its entries, by values from the data, or mix it with another sample."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Generator, Tensor

from pinoise.choices import NeighbourCount, Share
from pinoise.noise import NEIGHBOURS, Columns, Support, draw_bank
from pinoise.views.base import Batch, Site, View, per_sample


def shuffled(x: Tensor, generator: Generator | None = None) -> Tensor:
    """Return another sample of the batch for every sample: the next one in a random cyclic order, never itself.

    >>> x = torch.arange(8.0)
    >>> bool((shuffled(x) != x).all())
    True
    """
    order = torch.randperm(len(x), device=x.device, generator=generator)
    return x[order.roll(1)][order.argsort()]


def draw_marginals(
    bank: Tensor, like: Tensor, generator: Generator | None = None, columns: Columns | None = None
) -> Tensor:
    """Draw every entry, or every column, from its empirical marginal. The rows of a bank are the marginals.

    >>> bank = torch.tensor([[1.0, 10.0], [2.0, 20.0]])
    >>> draw = draw_marginals(bank, torch.zeros(50, 2))
    >>> sorted(draw[:, 0].unique().tolist()), sorted(draw[:, 1].unique().tolist())
    ([1.0, 2.0], [10.0, 20.0])
    """
    if columns is not None:
        return columns.from_rows(bank, like, generator)
    flat = bank.flatten(1)  # (n, d)
    rows = torch.randint(len(flat), (len(like), flat.shape[1]), device=like.device, generator=generator)
    return flat.gather(0, rows).reshape(like.shape)


def draw_columns(x: Tensor, generator: Generator | None = None, columns: Columns | None = None) -> Tensor:
    """Shuffle every feature, or every column, independently among the samples of the batch.

    >>> draw_columns(torch.arange(6.0).reshape(3, 2)).sort(0).values
    tensor([[0., 1.],
            [2., 3.],
            [4., 5.]])
    """
    flat = x.flatten(1)
    order = draw_lots(flat, generator, columns).argsort(dim=0, stable=columns is not None)  # one for each column
    return flat.gather(0, order).reshape(x.shape)


def draw_lots(x: Tensor, generator: Generator | None = None, columns: Columns | None = None) -> Tensor:
    """Draw a number from 0 to 1 for every entry, the same for all features of a column.

    >>> lots = draw_lots(torch.zeros(5, 3), columns=Columns(3, [(1, 3)]))
    >>> bool((lots[:, 1] == lots[:, 2]).all()), bool((lots[:, 0] == lots[:, 1]).any())
    (True, False)
    """
    if columns is None:
        return torch.rand_like(x, generator=generator)
    return columns.spread(torch.rand(len(x), columns.number, device=x.device, dtype=x.dtype, generator=generator))


class ColumnView(View):
    """A view that moves columns of several features, such as categories, as a whole.

    Args:
        columns: these columns; None if there are none.
    """

    def __init__(self, columns: Columns | None = None) -> None:
        super().__init__()
        self.columns = columns

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the view for the columns of the data."""
        return cls(site.columns, **options)


class Mixup(ColumnView):
    """DACL (Verma et al., 2021): λ x + (1 − λ) x' with x' another sample and λ ~ U(α, 1).

    A column of several features, such as a category, is that of x' with probability 1 − λ.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> bool((Mixup(alpha=1.0)(Batch(x, torch.arange(2))).x == x).all())
    True
    """

    def __init__(self, columns: Columns | None = None, /, *, alpha: Share = 0.9) -> None:
        super().__init__(columns)
        self.alpha = alpha

    def forward(self, batch: Batch) -> Batch:
        """Return the mixed batch."""
        x, generator = batch.x, batch.generator
        ratio = self.alpha + (1 - self.alpha) * torch.rand(len(x), device=x.device, dtype=x.dtype, generator=generator)
        other = shuffled(x, generator)
        mixed = torch.lerp(other, x, per_sample(ratio, x))
        if self.columns is not None:
            mixed = self.columns(self.columns.taken(x, other, 1 - ratio[:, None], generator), mixed)
        return batch.moved(mixed)


class ScarfSwap(ColumnView):
    """SCARF (Bahri et al., 2022): an entry is replaced with probability ``rate`` by a draw from its empirical marginal.

    Args:
        bank: training rows (n, *shape) that represent the marginals.
        columns: the columns that became several features, which are replaced as a whole.
        rate: the probability of a replacement.
    """

    bank: Tensor

    def __init__(self, bank: Tensor, columns: Columns | None = None, /, *, rate: Share = 0.6) -> None:
        super().__init__(columns)
        self.rate = rate
        self.register_buffer("bank", bank, persistent=False)

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the view with the marginals of the training rows."""
        return cls(draw_bank(site.rows)[0], site.columns, **options)

    def forward(self, batch: Batch) -> Batch:
        """Return the corrupted batch."""
        mask = draw_lots(batch.x, batch.generator, self.columns) < self.rate
        other = draw_marginals(self.bank, batch.x, batch.generator, self.columns)
        return batch.moved(torch.where(mask, other, batch.x))


class VimeSwap(ColumnView):
    """VIME (Yoon et al., 2020): an entry is replaced with probability ``rate`` by an entry of its shuffled column.

    Args:
        columns: the columns that became several features, which are replaced as a whole.
        rate: the probability of a replacement.
    """

    def __init__(self, columns: Columns | None = None, /, *, rate: Share = 0.3) -> None:
        super().__init__(columns)
        self.rate = rate

    def forward(self, batch: Batch) -> Batch:
        """Return the corrupted batch."""
        mask = draw_lots(batch.x, batch.generator, self.columns) < self.rate
        return batch.moved(torch.where(mask, draw_columns(batch.x, batch.generator, self.columns), batch.x))


class Neighbour(View):
    """Replaces x by a neighbour, as in NNCLR (Dwibedi et al., 2021), but by distance in the input space.

    >>> import torch
    >>> support = Support(torch.tensor([[0.0], [1.0], [7.0]]), numbers=torch.arange(3), rows=3, k=1)
    >>> Neighbour(support)(Batch(torch.tensor([[7.0]]), torch.tensor([2]))).x
    tensor([[1.]])
    """

    by_row = True

    def __init__(self, support: Support) -> None:
        super().__init__()
        self.support = support

    @classmethod
    def build(cls, site: Site, *, k: NeighbourCount = NEIGHBOURS) -> Neighbour:
        """Return the view with the plain k nearest training rows."""
        return cls(Support.of(site.rows, k=k, mutual=False))

    def forward(self, batch: Batch) -> Batch:
        """Return a neighbour of every sample."""
        return batch.moved(self.support.draw(batch.x, rows=batch.rows, generator=batch.generator)[0])
