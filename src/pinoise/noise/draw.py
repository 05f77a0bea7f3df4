"""The draw of ε: the families of p_ψ(ε|x), and how the noise of different features goes together, one class for each.

A family is written as μ + s ⊙ n, so that gradients reach ψ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution, Independent, LowRankMultivariateNormal, Normal, Uniform

from pinoise.errors import UserError
from pinoise.noise.columns import MIXED_SHARE, Columns
from pinoise.noise.support import Support


def gaussian(mean: Tensor | float, scale: Tensor, draw: Tensor) -> Tensor:
    """ε = μ + σ ⊙ n with n ~ N(0, I) (Eq. 19).

    The paper writes Σ for this factor; it is used as a standard deviation.

    >>> gaussian(1.0, torch.tensor([2.0]), torch.tensor([-0.5]))
    tensor([0.])
    """
    noise = scale * draw
    return noise if isinstance(mean, float) and mean == 0 else mean + noise  # adding 0 would cost a pass over the batch


def uniform(mean: Tensor | float, scale: Tensor, draw: Tensor) -> Tensor:
    """ε = μ + (2u − 1) ⊙ w with u ~ U(0, 1): uniform on (μ − w, μ + w).

    >>> uniform(0.0, torch.tensor([3.0]), torch.tensor([1.0]))
    tensor([3.])
    """
    return mean + (2 * draw - 1) * scale


class Family(NamedTuple):
    """A family of p_ψ(ε|x), as μ + s ⊙ n."""

    noise: Callable[[Tensor | float, Tensor, Tensor], Tensor]  # from μ, s and a base draw to ε
    base: Callable[..., Tensor]  # draws like a tensor
    variance: float  # of ε for s = 1
    law: Callable[[Tensor, Tensor], Distribution]  # from μ and s


def _uniform_law(mean: Tensor, scale: Tensor) -> Distribution:
    return Uniform(mean - scale, mean + scale, validate_args=False)


FAMILIES = {
    "gaussian": Family(gaussian, torch.randn_like, 1.0, Normal),
    "uniform": Family(uniform, torch.rand_like, 1 / 3, _uniform_law),
}


def unit_rms(noise: Tensor, live: Tensor) -> Tensor:
    """Rescale every sample's noise to root mean square 1 over its live features.

    Args:
        noise: ε, shape (..., *shape), 0 in dead features.
        live: which features are live, shape (*shape).

    >>> unit_rms(torch.tensor([[3.0, 0.0, 3.0]]), torch.tensor([True, False, True]))
    tensor([[1., 0., 1.]])
    """
    norm = torch.linalg.vector_norm(noise, dim=_features(live), keepdim=True)
    unit: Tensor = noise * live.sum().sqrt() / norm.clamp_min(_least(noise))
    return unit


def expected_rms(mean: Tensor | float, scale: Tensor, live: Tensor, *, variance: float) -> Tensor:
    """√ of the mean over live features of E ε² = μ² + v s², for every sample, shape (m, 1, …).

    Args:
        mean: μ, shape (m, *shape) or a number, 0 in dead features.
        scale: s, shape (m, *shape), 0 in dead features.
        live: which features are live, shape (*shape).
        variance: v, the variance of ε for s = 1.

    >>> expected_rms(torch.tensor([[0.0, 4.0]]), torch.tensor([[3.0, 3.0]]), torch.ones(2, dtype=bool), variance=1.0)
    tensor([[4.1231]])
    """
    squares = (mean**2 + variance * scale.square()).sum(dim=_features(live), keepdim=True)
    return (squares / live.sum().clamp_min(1)).sqrt().clamp_min(_least(scale))


def _features(live: Tensor) -> tuple[int, ...]:
    return tuple(range(-live.ndim, 0))


def _least(noise: Tensor) -> float:
    """Return the smallest norm to divide by. Squares of smaller numbers underflow, and the noise would explode."""
    return float(torch.finfo(noise.dtype).tiny ** 0.5)


RANK = 32  # directions in which low-rank noise is correlated

# The size of correlated noise that stands alone, as a multiple of how much neighbours differ.
TRANSPLANT_AMPLITUDE = 2.0

_LEAST = 1e-6  # of v, where a density is computed
_PAIRS = 1024  # pairs of neighbours from which the covariance is estimated


class Factors(NamedTuple):
    """The correlation matrix W Wᵀ + diag(v) of noise. Its diagonal is 1, or 0 where neighbours are equal."""

    directions: Tensor  # W, shape (d, k)
    rest: Tensor  # v ≥ 0, shape (d,)


def low_rank_factors(differences: Tensor, rank: int = RANK) -> Factors:
    """Return factors of the correlation matrix of differences: the leading directions, and what they leave.

    Args:
        differences: centred at 0, shape (p, d).
        rank: the most directions.

    >>> factors = low_rank_factors(torch.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]]), rank=1)
    >>> (factors.directions @ factors.directions.T + factors.rest.diag()).round(decimals=3)
    tensor([[1., 1., 0.],
            [1., 1., 0.],
            [0., 0., 0.]])
    """
    size = differences.square().mean(dim=0).sqrt()
    unit = differences / torch.where(size > 0, size, 1)
    _, singular, directions = torch.linalg.svd(unit / math.sqrt(len(unit)), full_matrices=False)
    leading = directions[:rank].T * singular[:rank]
    return Factors(leading, ((size > 0).to(unit.dtype) - leading.square().sum(dim=1)).clamp_min(0))


def draw_low_rank(factors: Factors, count: int, *, generator: Generator | None = None) -> Tensor:
    """Draw n = W u + √v ⊙ w with u, w ~ N(0, I), shape (count, d).

    >>> draw_low_rank(Factors(torch.zeros(3, 1), torch.tensor([1.0, 1.0, 0.0])), 2)[:, 2].abs()
    tensor([0., 0.])
    """
    directions, rest = factors
    like: dict[str, Any] = {"dtype": rest.dtype, "device": rest.device, "generator": generator}
    along = torch.randn(count, directions.shape[1], **like) @ directions.T
    return along + rest.sqrt() * torch.randn(count, len(rest), **like)


class Noise(NamedTuple):
    """A draw of ε for a batch, and its σ in standard deviations of each feature."""

    epsilon: Tensor  # (m, *shape)
    scale: Tensor  # (m, *shape), or (1, *shape) if it is the same for every sample


class BaseDraw(NamedTuple):
    """What noise is made of, for every draw and sample."""

    n: Tensor  # (times, m, *shape): the base draw; correlated ones have variance 1
    stays: Tensor | None = None  # (times, m, 1…): mixed noise: which samples stay away from their neighbours
    pairs: Tensor | None = None  # (times · m, Q, 2): the pairs of rows whose differences are in n


class Diagonal:
    """Independent features: n of any family.

    Args:
        family: of the independent part.
        columns: the columns of several features, which take no part in low-rank noise.
    """

    amplitude: ClassVar[float] = 1.0
    """The size of noise that stands alone, as a multiple of how much neighbours differ. Beside a move it is 1."""

    def __init__(self, family: Family, columns: Columns | None = None) -> None:
        self.family = family
        self.columns = columns

    def draw(self, x: Tensor, times: int, support: Support | None, generator: Generator | None = None) -> BaseDraw:
        """Draw for samples (m, *shape)."""
        return BaseDraw(self.family.base(x.expand(times, *x.shape), generator=generator))

    def redraw(
        self,
        x: Tensor,
        drawn: BaseDraw,
        scale: Tensor,
        unit: Tensor,
        *,
        donors: Tensor | None,
        support: Support | None,
        moves: bool,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return samples (times, m, d) whose columns of several features are of other rows, as often as σ says.

        Each column is that of a random row, with probability σ²/2. Transplanted differences change what differs between
        a row and its neighbour, to what the neighbour has, with probability (σ/r)²/2; those of mixed noise, (σ/r)²/4.

        Args:
            x: samples, after a move to neighbours.
            drawn: the draw for them.
            scale: σ in standard deviations, shape (m, d) or (1, d).
            unit: the standard deviation of each feature.
            donors: rows to take columns from, if there is no support.
            support: rows with their neighbours.
            moves: whether samples have moved.
            generator: where random numbers come from; None is torch's global generator.
        """
        columns = self.columns
        if columns is None or (moves and drawn.stays is None):
            return x  # the neighbour's columns are enough: on tables of categories, more did harm
        sigma = columns.largest(scale)
        probability = self.family.variance * sigma.square() * (not moves) / 2
        bank: Any = donors if support is None else support.bank
        other = columns.from_rows(bank, x, generator)
        if drawn.pairs is not None and support is not None:
            spread = columns.lengths(support.spread())
            size = sigma * columns.largest(unit) / torch.where(spread > 0, spread, torch.inf)  # σ/r
            row, neighbour = (bank[part].reshape(x.shape) for part in drawn.pairs[:, 0].unbind(1))
            often = columns.largest((row != neighbour).to(x.dtype)) * size**2
            if drawn.stays is None:
                probability, other = often / 2, neighbour
            else:
                probability = torch.where(drawn.stays, often * MIXED_SHARE, probability)
                other = torch.where(drawn.stays, neighbour, other)
        return columns.taken(x, other.to(x.dtype), probability.clamp_max(1), generator)

    def settle(self, support: Support) -> None:
        """Find the pairs of neighbours now. Their number depends on the data, so a compiled draw cannot find them."""

    def law(self, mean: Tensor, scale: Tensor, live: Tensor, support: Support | None) -> Distribution:
        """Return p(ε) of the features that are live, shape (*shape), for μ and σ of shape (m, *shape).

        It is in double precision, as low rank makes small differences of large numbers.

        >>> live = torch.ones(1, dtype=bool)
        >>> Diagonal(FAMILIES["uniform"]).law(torch.zeros(1, 1), torch.tensor([[0.5]]), live, None).entropy()
        tensor([0.], dtype=torch.float64)
        """
        return Independent(self.family.law(mean[:, live].double(), scale[:, live].double()), 1)


class Differences(Diagonal):
    """Transplanted differences between other rows and their neighbours: features go together as these do.

    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> support = Support(rows, numbers=torch.arange(2), rows=2, k=1)
    >>> n = Differences(FAMILIES["gaussian"]).draw(torch.zeros(1000, 2), 1, support).n[0]
    >>> torch.allclose(n[:, 0], n[:, 1]), bool((n.std(dim=0) - 1).abs().max() < 0.2)
    (True, True)
    """

    amplitude = TRANSPLANT_AMPLITUDE

    def draw(self, x: Tensor, times: int, support: Support | None, generator: Generator | None = None) -> BaseDraw:
        """Draw pairs, and the weights of their differences."""
        assert support is not None  # ``check_covariance`` saw to it
        spread = support.spread()
        pairs = support.draw_pairs(times * len(x), generator=generator)
        n = support.differences(pairs, generator=generator) / torch.where(spread > 0, spread, 1)
        return BaseDraw(n.reshape(times, *x.shape).to(x.dtype), pairs=pairs)

    def settle(self, support: Support) -> None:
        """Find the pairs."""
        support.pairs()

    def law(self, mean: Tensor, scale: Tensor, live: Tensor, support: Support | None) -> Distribution:
        """Refuse: the differences come from finitely many rows."""
        raise UserError("this noise has no density: choose covariance 'diagonal' or 'low-rank'.")


class LowRank(Differences):
    """Gaussian n with about the correlations of those differences."""

    def __init__(self, family: Family, columns: Columns | None = None) -> None:
        super().__init__(family, columns)
        self._known: tuple[Tensor, Factors] | None = None  # the pairs, and the factors from them

    def draw(self, x: Tensor, times: int, support: Support | None, generator: Generator | None = None) -> BaseDraw:
        """Draw along the leading directions, and for each feature alone."""
        n = draw_low_rank(self.factors(support), times * len(x), generator=generator)
        return BaseDraw(n.reshape(times, *x.shape).to(x.dtype))

    def settle(self, support: Support) -> None:
        """Find the pairs and the factors from them."""
        self.factors(support)

    def law(self, mean: Tensor, scale: Tensor, live: Tensor, support: Support | None) -> Distribution:
        """Return the Gaussian with these factors."""
        directions, rest = (part[live.flatten()].double() for part in self.factors(support))
        some = scale[:, live].double()
        variance = some.square() * rest.clamp_min(_LEAST)  # a direction without noise has no density
        return LowRankMultivariateNormal(mean[:, live].double(), some[..., None] * directions, variance)

    def factors(self, support: Support | None) -> Factors:
        """Return the factors. They are found again when the neighbours have changed."""
        assert support is not None
        pairs = support.pairs().positions
        if self._known is None or self._known[0] is not pairs:
            size = min(_PAIRS, len(pairs))
            some = pairs[torch.arange(size, device=pairs.device) * len(pairs) // size]  # evenly spaced
            bank = support.bank.flatten(1)
            differences = bank[some[:, 0]] - bank[some[:, 1]]
            if self.columns is not None:
                differences = differences * ~self.columns.several
            self._known = pairs, low_rank_factors(differences)
        return self._known[1]


class Mixed(Differences):
    """For half of the samples a transplanted difference of twice the size, for the others independent features."""

    amplitude = 1.0

    def draw(self, x: Tensor, times: int, support: Support | None, generator: Generator | None = None) -> BaseDraw:
        """Draw both for every sample, and a lot that chooses."""
        transplanted = super().draw(x, times, support, generator)
        lots = torch.rand(times, len(x), *(1 for _ in x.shape[1:]), device=x.device, generator=generator)
        independent = self.family.base(x.expand(times, *x.shape), generator=generator)
        stays = lots < 0.5
        return BaseDraw(
            torch.where(stays, TRANSPLANT_AMPLITUDE * transplanted.n, independent), stays, transplanted.pairs
        )


COVARIANCES = {"diagonal": Diagonal, "differences": Differences, "low-rank": LowRank, "mixed": Mixed}
