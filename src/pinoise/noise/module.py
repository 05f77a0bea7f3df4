"""PiNoise: π-noise as one module for any training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pinoise.choices import DISTRIBUTION, GENERATOR, MEAN, Covariance, Distribution, Mean, ScaleMap, find, options_of
from pinoise.errors import UserError
from pinoise.modes import evaluating
from pinoise.noise import density
from pinoise.noise.distributions import (
    BASE_DRAWS,
    BASE_VARIANCES,
    REPARAMETERISATIONS,
    TRANSPLANT_AMPLITUDE,
    Correlated,
    Factors,
    check_choices,
    check_covariance,
    expected_rms,
    unit_rms,
)
from pinoise.noise.generators import (
    PAPERS_GENERATOR,
    PRIOR_WEIGHT,
    SCALE_MAPS,
    GlobalGenerator,
    SharedGenerator,
    check_feature_scale,
    check_initial_scale,
    check_shape,
    inverse_norm,
    make_generator,
    mean_log_ratio_squared,
    prior_scale,
)
from pinoise.noise.rows import Columns, Transplants, check_along, check_columns, redrawn
from pinoise.noise.support import NEIGHBOURS, Support

SCALE_MAP: ScaleMap = "softplus"
COVARIANCE: Covariance = "diagonal"
ALONG_COVARIANCE: Covariance = "mixed"  # of the library's default noise

# The smallest σ, in standard deviations; less has no effect as noise. σ stays there and stops learning, which keeps its
# gradients away from denormal numbers. Arithmetic with denormal numbers is many times slower.
SMALLEST_SCALE = 1e-6

# Draws in training between two checks whether the learned σ, the metric of the neighbour search, has moved.
REFRESH_EVERY = 50

# The learning rate of a ``global`` generator, as a multiple of the encoder's. Its numbers must move as far as the
# output of a network, but a network's output sums the steps of many weights.
GLOBAL_RATE = 10

_TYPICAL_ROWS = 256


class Noise(NamedTuple):
    """A draw of ε for a batch, and its σ in standard deviations of each feature."""

    epsilon: Tensor  # (m, *shape)
    scale: Tensor  # (m, *shape), or (1, *shape) if it is the same for every sample


class _Draws(NamedTuple):
    """What noise is made of, for every draw and sample."""

    n: Tensor  # (times, m, *shape): of variance 1
    stays: Tensor | None = None  # (times, m, 1…): mixed noise: which samples stay away from their neighbours
    pairs: Tensor | None = None  # (times · m, Q, 2): the pairs of rows whose differences are in n


class PiNoise(nn.Module):
    """Learned noise ε ~ p_ψ(ε|x), added to x (Algorithm 1 of the paper).

    Noise is measured in units of ``feature_scale``, the standard deviation of each feature in the training data. A
    feature whose scale is 0 is dead and gets no noise. With a ``support`` the noise moves a sample along the data: ε is
    the step to one of the sample's neighbours plus a draw from the distribution. Neighbours are the nearest rows by
    distance in units of the learned σ.

    ``covariance`` says how the noise of different features goes together:

    ===============  ================================================================================================
    ``diagonal``     independent features, ε = σ ⊙ n
    ``differences``  ε = σ/r ⊙ a transplanted difference of other rows and their neighbours (``Support.differences``)
    ``low-rank``     ε = σ ⊙ n with n Gaussian and about the correlations of those differences; it has a density
    ``mixed``        every sample draws one of two noises: a step to a neighbour plus diagonal noise, or a transplanted
                     difference of twice the size without such a step
    ===============  ================================================================================================

    Args:
        shape: the shape of one sample, or the number of features.
        distribution: ``"gaussian"``, ε = μ + σ ⊙ n, or ``"uniform"``, ε = μ + (2u − 1) ⊙ w.
        mean: ``"zero"`` fixes μ = 0, ``"learned"`` makes it an output of the generator.
        generator: ``"mlp"``, ``"shared"``, ``"global"``, ``"constant"``, for images (C, H, W) also ``"resnet18"``,
            ``"resnet50"`` and ``"unet"``. Your own is a module from (m, *shape) to (m, outputs, *shape), or a class or
            function that makes one from the shape and the outputs. There is 1 output (scale), or 2 (scale, mean) if
            the mean is learned.
        positive: the map to σ ≥ 0: ``"softplus"``, ``"abs"``, or ``"fixed-entropy"``, which keeps Σ_j log σ_j constant.
        initial_scale: σ (or w) for a generator output of 0, in units of ``feature_scale``; a number, or a tensor of
            shape ``shape``. None is ``amplitude`` times the spread of neighbours in the support, or 1 without one.
        feature_scale: the standard deviation of each feature, a tensor of shape ``shape``; ones if None.
        normalize: the root mean square to which every ε is rescaled, over live features and in units of
            ``feature_scale``; None does not rescale.
        hidden: width of a generator's fully connected layers; the generator's default if None.
        width: channels of a generator for images; the generator's default if None.
        encoder: the encoder whose features the ``shared`` generator reads.
        support: training rows and their neighbours, in the units of x.
        covariance: as above; all but ``"diagonal"`` need a support.
        amplitude: σ at the start as a multiple of the spread of neighbours. None is 1, or 2 for correlated noise
            without a step to a neighbour.
        moves: whether samples move to their neighbours in the support.
        weight: λ of ``regularizer``.
        columns: the columns that became several features, such as categories. Each has one σ and moves as a whole, to
            the values of another row.
        donors: rows from which such columns are taken, shape (n, d), if there is no support.

    >>> noise = PiNoise(4, hidden=8)
    >>> x = torch.zeros(3, 4)
    >>> noise(x).shape, noise.scale(x).shape, bool((noise.mean(x) == 0).all())
    (torch.Size([3, 4]), torch.Size([3, 4]), True)
    """

    feature_scale: Tensor
    initial_scale: Tensor

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        distribution: Distribution = DISTRIBUTION,
        mean: Mean = MEAN,
        generator: Any = PAPERS_GENERATOR,
        positive: ScaleMap = SCALE_MAP,
        initial_scale: float | Tensor | None = None,
        feature_scale: Tensor | None = None,
        normalize: float | None = None,
        hidden: int | None = None,
        width: int | None = None,
        encoder: nn.Module | None = None,
        support: Support | None = None,
        covariance: Covariance = COVARIANCE,
        amplitude: float | None = None,
        moves: bool = True,
        weight: float = 0.0,
        columns: Columns | None = None,
        donors: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.shape = check_shape(shape)
        self.columns = columns
        check_columns(columns, self.shape, has_donors=support is not None or donors is not None)
        self.register_buffer("donors", None if columns is None or support is not None else donors)
        check_covariance(covariance, distribution, amplitude, initial_scale, has_support=support is not None)
        check_choices(distribution, positive, mean, normalize=normalize, hidden=hidden)
        self.distribution = distribution
        self.positive = positive
        self.normalize = normalize
        self.outputs = 2 if mean == "learned" else 1
        self.weight = weight
        self.covariance = covariance
        self.moves = moves and support is not None
        self._correlated = None
        if support is not None and covariance != "diagonal":
            self._correlated = Correlated(support, low_rank=covariance == "low-rank", columns=columns)
        unit = check_feature_scale(torch.ones(self.shape) if feature_scale is None else feature_scale, self.shape)
        self.register_buffer("feature_scale", unit)
        if initial_scale is None:
            initial_scale = 1.0 if support is None else self._prior_of(support, amplitude)
        self.register_buffer("initial_scale", check_initial_scale(initial_scale, self.shape, least=SMALLEST_SCALE))
        self.support = support
        given = {name: value for name, value in (("hidden", hidden), ("width", width)) if value is not None}
        if isinstance(generator, str) and (part := find(GENERATOR, generator)) is not None:
            given = {name: value for name, value in given.items() if name in options_of(part)}
        self.generator = make_generator(generator, self.shape, self.outputs, encoder=encoder, options=given)

    def _prior_of(self, support: Support, amplitude: float | None) -> Tensor:
        """Return the amplitude times r, the spread of neighbours, as a scale of this distribution."""
        if amplitude is None:
            alone = self._correlated is not None and not self.moves and self.covariance != "mixed"
            amplitude = TRANSPLANT_AMPLITUDE if alone else 1.0
        # w of uniform noise on (−w, w) is √3 times its standard deviation.
        factor = amplitude / math.sqrt(BASE_VARIANCES[self.distribution])
        if self.columns is None:
            return prior_scale(support.spread(), self.feature_scale) * factor
        prior = prior_scale(self.columns.lengths(support.spread()), self.columns.largest(self.feature_scale))
        return self.columns.spread(prior * factor)

    @classmethod
    def along(
        cls,
        data: Tensor,
        *,
        neighbours: int = NEIGHBOURS,
        covariance: Covariance = ALONG_COVARIANCE,
        amplitude: float | None = None,
        weight: float = PRIOR_WEIGHT,
        columns: Columns | None = None,
    ) -> PiNoise:
        """Return the library's default noise, which moves samples along the data, for your own training loop.

        A sample moves to one of its nearest neighbours and gets noise of fixed entropy with one learned σ per feature,
        or it moves by a difference between two other neighbours.
        In train mode the neighbours follow σ. Compiled noise needs a call of ``follow`` from time to time. A loop uses
        it in three lines::

            optimizer = torch.optim.Adam([{"params": encoder.parameters()}, *noise.param_groups(1e-3)], lr=1e-3)
            first, second = noise.views(x, rows)
            loss = nt_xent(encoder(first), encoder(second)).mean() + noise.regularizer(x)

        Args:
            data: training rows in any units, shape (n, *shape). At most 2,048 of them, chosen at random, are kept as
                neighbours. They are part of the state.
            neighbours: the number of neighbours of a sample; with 0, samples do not move to neighbours.
            covariance: how the noise of different features goes together.
            amplitude: σ at the start as a multiple of the spread of neighbours.
            weight: λ of ``regularizer``.
            columns: the columns that became several features, such as categories.

        >>> data = torch.randn(50, 4)
        >>> noise = PiNoise.along(data)
        >>> first, second = noise.views(data[:8], torch.arange(8))
        >>> first.shape, bool(noise.regularizer(first) < 1e-6)
        (torch.Size([8, 4]), True)
        """
        check_along(data, neighbours, weight)
        data = data.detach()
        deviation = data.std(dim=0, correction=0)
        if columns is not None:
            deviation = torch.where(deviation > 0, columns.spread(columns.lengths(deviation)), 0)
        support = Support.of(data, k=neighbours or NEIGHBOURS)
        support.refresh(deviation)
        noise = cls(
            tuple(data.shape[1:]),
            generator="global",
            positive="fixed-entropy",
            feature_scale=deviation,
            support=support,
            covariance=covariance,
            amplitude=amplitude,
            moves=neighbours > 0,
            weight=weight,
            columns=columns,
        ).to(data.device)
        if noise._correlated is not None:
            noise._correlated.settle()
        return noise

    def param_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return ψ as parameter groups for an optimiser, with the learning rate that suits the generator.

        Args:
            lr: the encoder's learning rate.

        >>> [group["lr"] for group in PiNoise(4, generator="global").param_groups(0.5)]
        [5.0]
        """
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rate = lr * GLOBAL_RATE if isinstance(self.generator, GlobalGenerator) else lr
        return [{"params": learning, "lr": rate}] if learning else []

    def views(self, x: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return two noisy views of samples, x + ε and x + ε'. Arguments are as in ``sample``."""
        first, second = x + self.sample(x, draws=2, rows=rows)
        return first, second

    def regularizer(self, x: Tensor) -> Tensor:
        """λ · mean (log σ − log r)² with r the initial scale. Add it to the loss: it keeps noise in every feature."""
        scale, _ = self._parameters_of_noise(x)
        return self.weight * mean_log_ratio_squared(self.by_column(scale), self.by_column(self.initial_scale))

    def by_column(self, values: Tensor) -> Tensor:
        """Return σ, or what else the features of a column share, once for every column."""
        return values if self.columns is None else self.columns.largest(values)

    def forward(self, x: Tensor) -> Tensor:
        """Return x + ε for a batch (m, *shape)."""
        return x + self.sample(x)

    def sample(
        self,
        x: Tensor,
        draws: int | None = None,
        features: Tensor | None = None,
        rows: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw ε of shape (m, *shape), or ``draws`` independent ones of shape (draws, m, *shape).

        Args:
            x: samples (m, *shape).
            draws: the number of independent draws; None for a single one.
            features: the encoder's features of x for a ``shared`` generator, if the caller has them already.
            rows: the samples' row numbers in the training data of the support, if they are known. The neighbours of a
                training row are then looked up, not searched. Wrong numbers are refused; in training they are checked
                at the first draw and then every 50 draws.
            generator: where random numbers come from; None is torch's global generator.
        """
        noises = self.draw(x, 1 if draws is None else draws, features=features, rows=rows, generator=generator)
        epsilon = torch.stack([noise.epsilon for noise in noises])
        return epsilon[0] if draws is None else epsilon

    def draw(
        self,
        x: Tensor,
        times: int,
        *,
        features: Tensor | None = None,
        rows: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Noise, ...]:
        """Draw independent ε, each with its σ, from one pass through the generator. Arguments are as in ``sample``."""
        scale, mean = self._parameters_of_noise(x, features)
        # Reading the counter would break a compiled graph, so compiled noise keeps its neighbours.
        if self.support is not None and not torch.compiler.is_compiling():
            self._follow(self.support, x, rows)
        drawn = self._base_draws(x, times, generator)
        noise_of = REPARAMETERISATIONS[self.distribution]
        unit = self.feature_scale
        if self.normalize is None:
            noise = noise_of(mean * unit if isinstance(mean, Tensor) else mean, scale * unit, drawn.n)
        else:
            noise = unit * self.normalize * unit_rms(noise_of(mean, scale, drawn.n) * self._numbers, self._numbers)
        there = x
        if self.support is not None and self.moves:
            step = self.support.draw(x, rows=rows, times=times, generator=generator) - x
            step = step if drawn.stays is None else torch.where(drawn.stays, 0, step)
            noise, there = noise + step, x + step
        if self.columns is not None:
            sigma = scale if self.normalize is None else self._normalised(x)[0]
            whole = self._redrawn(self.columns, there.expand_as(noise), sigma, drawn, generator)
            noise = torch.where(self.columns.several, whole - x, noise)
        return tuple(Noise(epsilon, scale) for epsilon in noise)

    def _redrawn(
        self, columns: Columns, x: Tensor, scale: Tensor, drawn: _Draws, generator: torch.Generator | None
    ) -> Tensor:
        """Return samples (times, m, d) whose columns of several features are those of other rows, as often as σ says.

        A sample that has moved to a neighbour has the neighbour's columns and needs no more: on tables of categories,
        more did harm.
        """
        if self.moves and drawn.stays is None:
            return x
        bank: Any = self.donors if self.support is None else self.support.bank
        sigma = columns.largest(scale)
        variance = BASE_VARIANCES[self.distribution] * sigma.square() * (not self.moves)
        transplants = None
        if drawn.pairs is not None and self.support is not None:
            spread = columns.lengths(self.support.spread())
            size = sigma * columns.largest(self.feature_scale) / torch.where(spread > 0, spread, torch.inf)
            transplants = Transplants(drawn.pairs[:, 0], size, drawn.stays)
        return redrawn(columns, x, bank, variance, transplants, generator)

    def _base_draws(self, x: Tensor, times: int, generator: torch.Generator | None) -> _Draws:
        many = x.expand(times, *x.shape)
        independent = BASE_DRAWS[self.distribution]
        if self._correlated is None:
            return _Draws(independent(many, generator=generator))
        pairs = None
        if self.columns is not None and not self._correlated.low_rank:
            pairs = self._correlated.support.draw_pairs(times * len(x), generator=generator)
        correlated = self._correlated.draw(times * len(x), pairs=pairs, generator=generator)
        correlated = correlated.reshape(many.shape).to(x.dtype)
        if self.covariance != "mixed":
            return _Draws(correlated, pairs=pairs)
        lots = torch.rand(times, len(x), *(1 for _ in self.shape), device=x.device, generator=generator)
        stays = lots < 0.5
        drawn = torch.where(stays, TRANSPLANT_AMPLITUDE * correlated, independent(many, generator=generator))
        return _Draws(drawn, stays, pairs)

    def log_density(self, x: Tensor, noise: Tensor) -> Tensor:
        """log p_ψ(ε|x) over live features, in nats, shape (m,), for noise that has a density.

        Args:
            x: samples (m, *shape).
            noise: ε, in the units of x, shape (m, *shape).

        >>> PiNoise(2, generator="constant").log_density(torch.zeros(1, 2), torch.zeros(1, 2))  # −log 2π
        tensor([-1.8379])
        """
        scale, mean, live, factors = self._density_parameters(x)
        return density.log_density(noise - mean, scale, live, bounded=self.distribution == "uniform", factors=factors)

    def entropy(self, x: Tensor) -> Tensor:
        """The entropy of ε given x over live features, in nats, shape (m,), for noise that has a density.

        >>> PiNoise(1, distribution="uniform", initial_scale=0.5, generator="constant").entropy(torch.zeros(2, 1))
        tensor([0., 0.])
        """
        scale, _, live, factors = self._density_parameters(x)
        return density.entropy(scale, live, bounded=self.distribution == "uniform", factors=factors)

    def _density_parameters(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Factors | None]:
        """Return σ, μ (m, *shape), the live features (*shape) and the correlations. Refuse noise without a density."""
        if self.moves or self.covariance in ("differences", "mixed") or self.normalize is not None:
            raise UserError(
                "this noise has no density: choose covariance 'diagonal' or 'low-rank', no neighbours and no normalize."
            )
        if self.columns is not None:
            raise UserError("noise that moves categories has no density: leave them out.")
        factors = None if self._correlated is None else self._correlated.factors()
        return self.scale(x), self.mean(x), self.feature_scale > 0, factors

    def scale(self, x: Tensor) -> Tensor:
        """σ(x) (or w(x) of the uniform distribution), in the units of x, shape (m, *shape)."""
        return self.feature_scale * self.relative_scale(x)

    def relative_scale(self, x: Tensor) -> Tensor:
        """σ(x) in units of each feature's training standard deviation, 0 for dead features.

        With ``normalize`` it is σ after rescaling, computed from the expected size of a draw.
        """
        return self._normalised(x)[0].expand_as(x)

    def mean(self, x: Tensor) -> Tensor:
        """μ(x) in the units of x, shape (m, *shape). With ``normalize`` it is rescaled as in ``relative_scale``."""
        mean = self._normalised(x)[1]
        return (self.feature_scale * mean).expand_as(x) if isinstance(mean, Tensor) else torch.zeros_like(x)

    def penalty(self, noise: Tensor) -> Tensor:
        """1 / mean‖ε‖₂, the paper's guard against vanishing noise. The caller multiplies it by λ."""
        return inverse_norm(noise)

    def _follow(self, support: Support, x: Tensor, rows: Tensor | None) -> None:
        """Check the row numbers and update the neighbours to σ, in training every ``REFRESH_EVERY`` draws."""
        due = support.drawn % REFRESH_EVERY == 0
        if self.moves and rows is not None and (due or not self.training):
            support.check_rows(x, rows)
        if self.training:
            if due:
                self.follow()
            support.count_draw()

    def follow(self) -> None:
        """Update the neighbours to the learned σ now. Compiled noise does not do this by itself.

        Noise that is moved to a device or loaded from a file, and then compiled as one graph, needs a call, too.
        """
        if self.support is not None:
            # In full precision, also inside a training step with autocast.
            with torch.autocast(self.support.bank.device.type, enabled=False):
                self.support.refresh(self.typical_scale())
                if self._correlated is not None:
                    self._correlated.settle()

    @torch.no_grad()
    def typical_scale(self) -> Tensor:
        """The geometric mean of σ over rows of the support, in the units of x, shape (*shape)."""
        if self.support is None:
            raise UserError("this noise has no support to average its scale over: call scale(x) with samples instead.")
        bank = self.support.bank
        size = min(_TYPICAL_ROWS, len(bank))  # evenly spaced, because the bank may be sorted
        with evaluating(self.generator):
            scale, _ = self._parameters_of_noise(bank[torch.arange(size, device=bank.device) * len(bank) // size])
        return self.feature_scale * scale.clamp_min(SMALLEST_SCALE).log().mean(dim=0).exp()

    @property
    def shares_features(self) -> bool:
        """Whether the generator reads the encoder's features of x."""
        return isinstance(self.generator, SharedGenerator)

    def _parameters_of_noise(self, x: Tensor, features: Tensor | None = None) -> tuple[Tensor, Tensor | float]:
        """The relative σ and μ, per sample or one for all samples, from one pass through the generator."""
        if x.shape[1:] != self.shape:
            raise UserError(f"samples have shape {tuple(x.shape[1:])}: this noise was made for {self.shape}.")
        raw = self.generator(x, features) if features is not None and self.shares_features else self.generator(x)
        size = math.prod(self.shape) * self.outputs
        if raw.numel() not in (size, x.shape[0] * size):
            raise UserError(
                f"the generator returned shape {tuple(raw.shape)} for {x.shape[0]} samples: "
                f"it must return {(x.shape[0], self.outputs, *self.shape)}, or one entry for all samples."
            )
        raw = raw.reshape(-1, self.outputs, *self.shape)
        live = (self.feature_scale > 0).to(x.dtype)
        if self.columns is None:
            scale = self._scale_of(raw[:, 0], self.initial_scale, live)
        else:  # one σ for each column
            initial, alive = self.columns.largest(live * self.initial_scale), self.columns.largest(live)
            raw = self.columns.means(raw)
            scale = self._scale_of(raw[:, 0], torch.where(alive > 0, initial, 1), alive)
            scale, raw = self.columns.spread(scale), self.columns.spread(raw)
        return live * scale, self._numbers * raw[:, 1] if self.outputs == 2 else 0.0

    def _scale_of(self, raw: Tensor, initial: Tensor, live: Tensor) -> Tensor:
        return SCALE_MAPS[self.positive](raw, initial, live).clamp_min(SMALLEST_SCALE)

    @property
    def _numbers(self) -> Tensor:
        """Which live features are numbers, rather than one of several features of a column."""
        live = self.feature_scale > 0
        return live if self.columns is None else live & ~self.columns.several

    def _normalised(self, x: Tensor) -> tuple[Tensor, Tensor | float]:
        """The relative σ and μ, per sample or one for all samples, after ``normalize``."""
        scale, mean = self._parameters_of_noise(x)
        if self.normalize is None:
            return scale, mean
        offset = self.by_column(mean.abs()) if isinstance(mean, Tensor) else mean
        live = self.by_column((self.feature_scale > 0).to(scale.dtype))
        rms = expected_rms(offset, self.by_column(scale), live, variance=BASE_VARIANCES[self.distribution])
        factor = self.normalize / rms
        return scale * factor, mean * factor

    def extra_repr(self) -> str:
        """Name the settings in the module's repr."""
        mean = "learned" if self.outputs == 2 else "zero"
        kind = f"distribution={self.distribution}, covariance={self.covariance}"
        return f"{self.shape}, {kind}, mean={mean}, positive={self.positive}"
