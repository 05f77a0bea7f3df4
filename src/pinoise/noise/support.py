"""The data along which noise moves samples: training rows and their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from pinoise.errors import UserError
from pinoise.noise.rows import (
    BLOCK_ENTRIES,
    Nearest,
    TrainingRows,
    draw_bank,
    nearest,
    nearest_others,
    neighbour_spread,
)

NEIGHBOURS = 10  # the default number of neighbours of a sample

# The most rows among which neighbours are searched. It bounds the cost of the search for training data of any size.
SUPPORT_ROWS = 2048

# The most training rows for which the neighbours of all rows are kept in a table. Up to this size, making the table
# again whenever σ has moved costs less than a search in every step.
TABLE_ROWS = 16_384

REFRESH_EVERY = 50  # draws in training between two checks whether the learned σ, the metric of the search, has moved

STALE_AFTER = 0.02  # neighbours are searched again once log σ has moved by this much, on average over features

TRANSPLANTED = 4  # Q: the number of differences that a draw of ``differences`` adds up

_TABLE_BLOCK = 1024  # the most rows fetched at once; fewer if they are wide
_ROUNDING = 1e-4  # relative error of squared distances in single precision; they are differences of larger numbers


class Neighbours(NamedTuple):
    """The neighbours of samples."""

    positions: Tensor  # (m, k): positions in the bank
    eligible: Tensor  # (m, k): whether the sample may move there


class Pairs(NamedTuple):
    """Rows of the bank with their neighbours, and how much the two differ."""

    positions: Tensor  # (p, 2): of a row and of a neighbour to which it may move
    spread: Tensor  # (*shape): r of ``neighbour_spread``


class _Bank(NamedTuple):
    """The bank in units of a metric."""

    middle: Tensor  # (*shape): the mean of the rows
    rows: Tensor  # (b, d): the rows around their mean, in units of the metric
    squares: Tensor  # (b,): their squared norms
    crowding: Tensor  # (b,): every row's mean squared distance to its k nearest
    found: Nearest  # every row's neighbours
    reach: Tensor  # (b,): the discounted squared distance to the farthest neighbour


class Support(nn.Module):
    """The training rows to which a sample can move: its k nearest neighbours, by distance in units of σ.

    In many dimensions some rows are hubs: they are near almost every other row. Examples are rows near the mean, and
    empty rows in sparse data. Two rules keep hubs out. First, a row's own mean squared distance to its k nearest is
    subtracted from the squared distance to it. Second, a sample moves only to neighbours that have the sample among
    their own neighbours. A sample without mutual neighbours stays where it is.

    Neighbours are searched in a bank of training rows. If the bank holds all training rows, or ``fetch`` returns the
    others, the neighbours of all rows are found once and looked up by row number. Otherwise they are searched for each
    batch. ``refresh`` sets a new σ as the metric.

    Args:
        bank: training rows, shape (b, *shape).
        numbers: their row numbers in the training data, ascending, shape (b,); they keep a row from being its own
            neighbour.
        rows: the total number of training rows.
        k: the number of neighbours of a sample, at most b − 1.
        mutual: whether to apply both rules against hubs; False takes the plain k nearest.
        fetch: returns training rows by their numbers. It is not part of the state, and copies drop it.

    >>> support = Support(torch.tensor([[0.0], [1.0], [7.0], [7.5]]), numbers=torch.arange(4), rows=4, k=1)
    >>> support.draw(torch.tensor([[0.0], [7.5]]), rows=torch.tensor([0, 3]))
    tensor([[[1.],
             [7.]]])
    """

    bank: Tensor
    numbers: Tensor
    total: Tensor
    draws: Tensor  # the number of draws in training; saved, so that a resumed run refreshes at the same steps
    metric: Tensor  # σ at the last refresh; saved, so that a resumed run has the same neighbours
    _known_bank: _Bank | None  # these three depend on the metric
    _known_table: Neighbours | None
    _known_pairs: Pairs | None

    def __init__(
        self,
        bank: Tensor,
        *,
        numbers: Tensor,
        rows: int,
        k: int = NEIGHBOURS,
        mutual: bool = True,
        fetch: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        if len(bank) < 2:
            raise UserError(f"noise along the data needs at least 2 training rows: the bank has {len(bank)}.")
        if k < 1:
            raise UserError(f"k is {k}: a sample must have at least 1 neighbour.")
        self.k = min(k, len(bank) - 1)
        self.rows = rows
        self.mutual = mutual
        self.fetch = fetch
        self.register_buffer("bank", bank.detach().clone())
        self.register_buffer("numbers", numbers)
        self.register_buffer("total", torch.tensor(rows))  # saved for whoever loads the state
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))
        self.register_buffer("metric", torch.ones_like(bank[0]))
        self._draws: int | None = 0  # equals the buffer; reading the buffer may wait for its device
        self._forget()

    @classmethod
    def of(cls, rows: TrainingRows, *, k: int = NEIGHBOURS, mutual: bool = True) -> Support:
        """Return the support of training rows: all of them, or a random sample if there are many.

        >>> len(Support.of(torch.randn(3000, 2)).bank)
        2048
        """
        bank, numbers = draw_bank(rows, most=SUPPORT_ROWS)
        fetch = rows.__getitem__ if len(numbers) < len(rows) <= TABLE_ROWS else None
        return cls(bank, numbers=numbers.to(bank.device), rows=len(rows), k=k, mutual=mutual, fetch=fetch)

    @property
    def drawn(self) -> int:
        """The number of draws in training so far."""
        if self._draws is None:
            self._draws = int(self.draws)
        return self._draws

    def due(self, x: Tensor, rows: Tensor | None, *, training: bool) -> bool:
        """Count a draw in training, check the row numbers, and return whether the metric should follow σ now."""
        first = self.drawn % REFRESH_EVERY == 0
        if rows is not None and (first or not training):
            self.check_rows(x, rows)
        if training:
            self._draws = self.drawn + 1
            self.draws.fill_(self._draws)
        return training and first

    def check_rows(self, x: Tensor, rows: Tensor) -> None:
        """Refuse wrong row numbers. Samples are compared only with rows that are in the bank."""
        if not isinstance(rows, Tensor) or rows.is_floating_point() or rows.shape != (len(x),):
            found = f"{rows.dtype} of shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise UserError(f"rows is {found}: give a tensor of integers, one for each of {len(x)} samples.")
        if not len(rows):
            return
        if int(rows.min()) < 0 or int(rows.max()) >= self.rows:
            raise self._out_of_range(rows)
        places = self._positions(rows)
        known = places >= 0
        given, own = x[known].to(self.bank.dtype), self.bank[places[known]]
        close = 1e-4 if x.dtype in (torch.float32, torch.float64) else 1e-2  # relative to the size of the numbers
        wrong = ((given - own).abs() > close * (own.abs() + self.bank.std(dim=0))).flatten(1).any(dim=1)
        if bool(wrong.any()):
            number = int(rows[known][wrong][0])
            raise UserError(
                f"rows gives number {number} to a sample that differs from training row {number}: give the samples' "
                "row numbers in the training data, or leave rows out."
            )

    def _out_of_range(self, rows: Tensor) -> UserError:
        return UserError(
            f"rows has numbers from {int(rows.min())} to {int(rows.max())}: "
            f"the training data has rows 0 to {self.rows - 1}."
        )

    def draw(
        self, x: Tensor, *, rows: Tensor | None = None, times: int = 1, generator: Generator | None = None
    ) -> Tensor:
        """Return neighbours drawn uniformly for every sample, shape (times, m, *shape).

        Args:
            x: samples (m, *shape).
            rows: their row numbers, if they are training rows, shape (m,).
            times: the number of independent draws.
            generator: where random numbers come from; None is torch's global generator.
        """
        positions, eligible = self.neighbours(x, rows)
        lots = torch.rand(times, *positions.shape, device=x.device, generator=generator).masked_fill(~eligible, -1)
        chosen = positions.expand_as(lots).gather(2, lots.argmax(dim=2, keepdim=True)).squeeze(2)  # (times, m)
        moves = eligible.any(dim=1).reshape((-1,) + (1,) * (x.ndim - 1))
        there = self.bank.index_select(0, chosen.flatten()).reshape(times, *x.shape)
        return torch.where(moves, there, x)

    def neighbours(self, x: Tensor, rows: Tensor | None = None) -> Neighbours:
        """Return the neighbours of every sample. Arguments are as in ``draw``."""
        if rows is None or (self.fetch is None and len(self.bank) < self.rows):
            return self._searched(x, rows)
        if self._known_table is None:
            self._known_table = self._table()
        try:
            return Neighbours(*(part[rows] for part in self._known_table))
        except IndexError:  # a CPU raises it at no extra cost
            raise self._out_of_range(rows) from None

    def pairs(self) -> Pairs:
        """Return all rows of the bank with the neighbours to which they may move, in the current metric.

        If no row has a mutual neighbour, plain neighbours are taken.
        """
        if self._known_pairs is None:
            positions, eligible = self._judged(self._measured_bank().found)
            # Neighbours that do not exist, in a bank of few rows, are not eligible either.
            wanted = eligible if bool(eligible.any()) else self._measured_bank().found.distances.isfinite()
            rows, places = wanted.nonzero(as_tuple=True)
            found = torch.stack([rows, positions[rows, places]], dim=1)
            spread = neighbour_spread(self.bank.flatten(1), found).reshape(self.metric.shape)
            self._known_pairs = Pairs(found, spread)
        return self._known_pairs

    def spread(self) -> Tensor:
        """Return r of ``neighbour_spread``, shape (*shape)."""
        return self.pairs().spread

    def draw_pairs(self, count: int, *, generator: Generator | None = None) -> Tensor:
        """Draw Q = 4 pairs of ``pairs`` for each of several draws, positions of shape (count, Q, 2)."""
        pairs = self.pairs().positions
        return pairs[torch.randint(len(pairs), (count, TRANSPLANTED), device=pairs.device, generator=generator)]

    def differences(self, pairs: Tensor, *, generator: Generator | None = None) -> Tensor:
        """Draw ε = Σ_q g_q (x_p − x_k(p)) / √(2Q): differences of neighbours, transplanted, shape (count, *shape).

        p is a random row of the bank, k(p) one of its neighbours, g ~ N(0, 1) and Q = 4. The covariance of ε is that of
        the differences between neighbours, halved, because both neighbours vary. No matrix is needed for it. The pairs
        are those of ``draw_pairs``.

        >>> support = Support(torch.tensor([[0.0, 0.0], [1.0, 2.0]]), numbers=torch.arange(2), rows=2, k=1)
        >>> x, y = support.differences(support.draw_pairs(3)).T
        >>> torch.allclose(2 * x, y)
        True
        """
        bank = self.bank.flatten(1)
        normal = torch.randn(len(pairs), TRANSPLANTED, 1, dtype=bank.dtype, device=bank.device, generator=generator)
        weights = normal / math.sqrt(2 * TRANSPLANTED)
        signed = torch.cat([weights, -weights], dim=2)
        with torch.autocast(bank.device.type, enabled=False):
            noise = F.embedding_bag(pairs.flatten(1), bank, per_sample_weights=signed.flatten(1), mode="sum")
        return noise.reshape(len(pairs), *self.metric.shape)

    @torch.no_grad()
    def refresh(self, scale: Tensor) -> None:
        """Set σ (*shape) as the metric if it has moved. A dead feature has σ = 0 and does not count in distances."""
        live = scale > 0
        moved = torch.where(live, (scale / self.metric).log().abs(), 0).sum() / live.sum()
        if float(moved) > STALE_AFTER:
            self.metric.copy_(torch.where(live, scale, 1))  # dead features are equal in all rows
            self._forget()

    def _measured(self, x: Tensor, middle: Tensor) -> Tensor:
        # Around the mean of the bank, because distances by ‖b‖² − 2ab lose digits far from the origin.
        return ((x.detach() - middle) / self.metric).flatten(1)

    def _measured_bank(self) -> _Bank:
        if self._known_bank is None:
            middle = self.bank.mean(dim=0)
            rows = self._measured(self.bank, middle)
            squares = rows.square().sum(dim=1)
            if self.mutual:
                found = nearest_others(rows, k=self.k, squares=squares)
            else:
                everyone = torch.arange(len(rows), device=rows.device)
                found = nearest(rows, rows, k=self.k, skip=everyone, squares=squares)
            crowding = found.crowding if self.mutual else torch.zeros_like(found.crowding)
            self._known_bank = _Bank(middle, rows, squares, crowding, found, found.distances.amax(dim=1))
        return self._known_bank

    def _searched(self, x: Tensor, rows: Tensor | None) -> Neighbours:
        """Search the neighbours of samples. ``rows`` are their row numbers if they are training rows."""
        bank = self._measured_bank()
        found = nearest(
            self._measured(x, bank.middle),
            bank.rows,
            k=self.k,
            skip=None if rows is None else self._positions(rows),
            skip_equal=rows is None,  # samples without a number may still be training rows
            discount=bank.crowding if self.mutual else None,
            squares=bank.squares,
        )
        return self._judged(found)

    def _table(self) -> Neighbours:
        """Return the neighbours of every training row."""
        known = self._judged(self._measured_bank().found)
        if self.fetch is None or len(self.bank) == self.rows:
            return known
        table = Neighbours(*(part.new_empty(self.rows, self.k) for part in known))
        _fill(table, self.numbers, known)
        outside = torch.ones(self.rows, dtype=torch.bool).index_fill(0, self.numbers.cpu(), False)
        step = max(1, min(_TABLE_BLOCK, BLOCK_ENTRIES // self.metric.numel()))
        for numbers in outside.nonzero().squeeze(1).split(step):
            here = numbers.to(self.bank.device)
            _fill(table, here, self._searched(self.fetch(numbers).to(self.bank), here))
        return table

    def _judged(self, found: Nearest) -> Neighbours:
        """Mark the neighbours that have the sample among their own neighbours."""
        counts = found.distances.isfinite()
        if not self.mutual:
            return Neighbours(found.positions, counts)
        bank = self._measured_bank()
        distances = found.distances + bank.crowding[found.positions] - found.crowding[:, None]  # seen from there
        reach = bank.reach[found.positions]
        return Neighbours(found.positions, counts & (distances <= reach + _ROUNDING * reach.abs().clamp_min(1)))

    def _positions(self, rows: Tensor) -> Tensor:
        """Return the positions of training rows in the bank, −1 for rows outside it."""
        place = torch.searchsorted(self.numbers, rows).clamp_max(len(self.numbers) - 1)
        return torch.where(self.numbers[place] == rows, place, -1)

    def _forget(self) -> None:
        """Drop what depends on the metric. It is computed again when needed."""
        self._known_bank = self._known_table = self._known_pairs = None

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._forget()  # the module may move to another device
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._draws = None  # read from the buffer again when needed
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known_bank": None, "_known_table": None, "_known_pairs": None, "fetch": None}


def _fill(table: Neighbours, rows: Tensor, found: Neighbours) -> None:
    for whole, part in zip(table, found, strict=True):
        whole[rows] = part
