"""What ε is drawn from: the families of p_ψ(ε|x), and how the noise of different features goes together.

A family is written as μ + s ⊙ n, so that gradients reach ψ. Of correlated noise n has variance 1 in every feature:
``differences`` transplants the differences between other rows and their neighbours. ``low-rank`` is the Gaussian with
about the same covariance; unlike transplanted differences it has a density, and so an entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import torch
from torch import Generator, Tensor

from pinoise.choices import Covariance, Mean
from pinoise.errors import UserError, unknown_choice
from pinoise.noise.generators import SCALE_MAPS
from pinoise.noise.rows import Columns
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


REPARAMETERISATIONS: dict[str, Callable[[Tensor | float, Tensor, Tensor], Tensor]] = {
    "gaussian": gaussian,
    "uniform": uniform,
}

BASE_DRAWS: dict[str, Callable[..., Tensor]] = {"gaussian": torch.randn_like, "uniform": torch.rand_like}

# The variance of ε for s = 1.
BASE_VARIANCES: dict[str, float] = {"gaussian": 1.0, "uniform": 1 / 3}


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

TRANSPLANT_AMPLITUDE = 2.0
"""The size of correlated noise that stands alone, as a multiple of how much neighbours differ. Beside a move to a
neighbour, 1 is enough."""

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


def log_determinant(factors: Factors, live: Tensor) -> Tensor:
    """log det(W Wᵀ + diag(v)) over live features, by the matrix determinant lemma, without a d × d matrix.

    Args:
        factors: W and v; v is raised to 1e-6, as a direction without noise has no density.
        live: which features count, shape (d,).

    >>> factors = Factors(torch.tensor([[0.8], [0.6]]), torch.tensor([0.36, 0.64]))
    >>> matrix = torch.tensor([[1.0, 0.48], [0.48, 1.0]])
    >>> torch.allclose(log_determinant(factors, torch.tensor([True, True])), matrix.logdet())
    True
    """
    directions, rest = _exact(factors, live)
    return (rest.log().sum() + torch.logdet(_inner(directions, rest))).to(factors.rest.dtype)


def mahalanobis(n: Tensor, factors: Factors, live: Tensor) -> Tensor:
    """nᵀ (W Wᵀ + diag(v))⁻¹ n over live features, by Woodbury's identity, shape (m,). Arguments as above.

    >>> factors = Factors(torch.tensor([[0.8], [0.6]]), torch.tensor([0.36, 0.64]))
    >>> n, matrix = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.48], [0.48, 1.0]])
    >>> torch.allclose(mahalanobis(n, factors, torch.tensor([True, True])), n @ matrix.inverse() @ n[0])
    True
    """
    directions, rest = _exact(factors, live)
    inside = n[:, live].double()
    scaled = inside / rest
    along = scaled @ directions
    shared: Tensor = torch.linalg.solve(_inner(directions, rest), along.T)
    return ((scaled * inside).sum(dim=1) - (along * shared.T).sum(dim=1)).to(n.dtype)


def _exact(factors: Factors, live: Tensor) -> Factors:
    """Live features in double precision: where v is nearly 0, a density is a small difference of large numbers."""
    return Factors(factors.directions[live].double(), factors.rest[live].double().clamp_min(_LEAST))


def _inner(directions: Tensor, rest: Tensor) -> Tensor:
    """I + Wᵀ diag(v)⁻¹ W, shape (k, k)."""
    own = torch.eye(directions.shape[1], dtype=rest.dtype, device=rest.device)
    return own + directions.T @ (directions / rest[:, None])


class Correlated:
    """Draws n whose features go together as the differences between neighbours in a support do.

    Args:
        support: the training rows and their neighbours.
        low_rank: whether n is Gaussian, with a density, or made of transplanted differences.
        columns: the columns of several features, which take no part in low-rank noise.

    >>> rows = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> n = Correlated(Support(rows, numbers=torch.arange(2), rows=2, k=1), low_rank=False).draw(1000)
    >>> torch.allclose(n[:, 0], n[:, 1]), bool((n.std(dim=0) - 1).abs().max() < 0.2)
    (True, True)
    """

    def __init__(self, support: Support, *, low_rank: bool, columns: Columns | None = None) -> None:
        self.support = support
        self.low_rank = low_rank
        self.columns = columns
        self._known: tuple[Tensor, Factors] | None = None  # the pairs, and the factors from them

    def draw(self, count: int, *, pairs: Tensor | None = None, generator: Generator | None = None) -> Tensor:
        """Return n, shape (count, *shape). Arguments are as in ``Support.differences``."""
        if self.low_rank:
            return draw_low_rank(self.factors(), count, generator=generator).reshape(count, *self.support.metric.shape)
        spread = self.support.pairs().spread
        return self.support.differences(count, pairs=pairs, generator=generator) / torch.where(spread > 0, spread, 1)

    def settle(self) -> None:
        """Find the pairs of neighbours now. Their number depends on the data, so a compiled draw cannot find them."""
        self.support.pairs()
        if self.low_rank:
            self.factors()

    def factors(self) -> Factors:
        """Return the factors of the correlation matrix. They are found again when the neighbours have changed."""
        pairs = self.support.pairs().positions
        if self._known is None or self._known[0] is not pairs:
            size = min(_PAIRS, len(pairs))
            some = pairs[torch.arange(size, device=pairs.device) * len(pairs) // size]  # evenly spaced
            bank = self.support.bank.flatten(1)
            differences = bank[some[:, 0]] - bank[some[:, 1]]
            if self.columns is not None:
                differences = differences * ~self.columns.several
            self._known = pairs, low_rank_factors(differences)
        return self._known[1]


def check_choices(distribution: str, positive: str, mean: str, *, normalize: float | None, hidden: int | None) -> None:
    """Refuse names and numbers that ``PiNoise`` does not know.

    >>> check_choices("gaussian", "softplus", "zero", normalize=0.0, hidden=None)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: normalize is 0.0: it must be a positive number, or None.
    """
    if distribution not in REPARAMETERISATIONS:
        raise unknown_choice("distribution", distribution, REPARAMETERISATIONS)
    if positive not in SCALE_MAPS:
        raise unknown_choice("positive map", positive, SCALE_MAPS)
    if mean not in get_args(Mean):
        raise unknown_choice("mean", mean, get_args(Mean))
    if normalize is not None and not (normalize > 0 and math.isfinite(normalize)):
        raise UserError(f"normalize is {normalize}: it must be a positive number, or None.")
    if hidden is not None and hidden < 1:
        raise UserError(f"hidden is {hidden}: the generator's width must be at least 1.")


def check_covariance(
    covariance: str,
    distribution: str,
    amplitude: float | None,
    initial_scale: object,
    *,
    has_support: bool,
) -> None:
    """Refuse a covariance that is unknown or does not fit the other arguments of ``PiNoise``.

    >>> check_covariance("differences", "gaussian", None, None, has_support=False)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: covariance 'differences' is that of neighbours in the data: give a support.
    """
    if covariance not in get_args(Covariance):
        raise unknown_choice("covariance", covariance, get_args(Covariance))
    if amplitude is not None and not (amplitude > 0 and math.isfinite(amplitude)):
        raise UserError(f"amplitude is {amplitude}: it must be a positive number, or None.")
    if amplitude is not None and initial_scale is not None:
        raise UserError(f"amplitude is {amplitude} and initial_scale is given too: both set σ; leave one out.")
    if covariance != "diagonal" and not has_support:
        raise UserError(f"covariance {covariance!r} is that of neighbours in the data: give a support.")
    if covariance != "diagonal" and distribution != "gaussian":
        raise UserError(
            f"covariance {covariance!r} belongs to distribution 'gaussian', not {distribution!r}: change one of them."
        )
    if amplitude is not None and not has_support:
        raise UserError(
            f"amplitude is {amplitude}, a multiple of how much neighbours differ, and this noise looks at none: leave "
            "it out, or choose another objective, covariance or number of neighbours."
        )
