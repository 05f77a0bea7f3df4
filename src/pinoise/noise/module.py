"""PiNoise: the π-noise generator as one module for anyone's training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from pinoise.errors import UserError, unknown_choice
from pinoise.networks.blocks import evaluating
from pinoise.noise.checks import check_feature_scale, check_initial_scale, check_shape
from pinoise.noise.distributions import BASE_DRAWS, BASE_VARIANCES, REPARAMETERISATIONS, Distribution
from pinoise.noise.generators import SharedGenerator, build_generator
from pinoise.noise.normalization import expected_rms, unit_rms
from pinoise.noise.penalty import inverse_norm, mean_log_ratio_squared
from pinoise.noise.prior import prior_scale
from pinoise.noise.scale_maps import SCALE_MAPS, Positive
from pinoise.noise.support import NEIGHBOURS, Support

Mean = Literal["zero", "learned"]

# Less than this share of a standard deviation is no noise: σ is held there and stops learning, which keeps its
# gradients clear of denormal numbers; arithmetic with those is many times slower.
SMALLEST_SCALE = 1e-6

REFRESH_EVERY = 50
"""Steps between looks at whether the learned σ, the metric in which neighbours are found, has moved."""

_TYPICAL_ROWS = 256


class Noise(NamedTuple):
    """Draws of ε, and the σ behind them in standard deviations of each feature."""

    epsilon: Tensor  # (m, *shape)
    scale: Tensor  # (m, *shape), or (1, *shape) where it is the same for every sample


class PiNoise(nn.Module):
    """Learned noise ε ~ p_ψ(ε|x), added to x (Algorithm 1 of the paper).

    Noise is measured in units of ``feature_scale``, the standard deviation of each feature in the training data; a
    feature whose scale is 0 is dead and gets no noise. With a ``support`` the noise moves a sample along the data: ε is
    then the way to one of its neighbours plus the noise of the distribution, and the learned σ decides who they are.

    Args:
        shape: the shape of one sample, or the number of features.
        distribution: ``"gaussian"``, ε = μ + σ ⊙ n, or ``"uniform"``, ε = μ + (2u − 1) ⊙ w.
        mean: ``"zero"`` fixes μ = 0, ``"learned"`` makes it an output of the generator.
        generator: ``"mlp"``, ``"shared"``, ``"global"``, ``"constant"``, for images (C, H, W) also ``"resnet18"``,
            ``"resnet50"`` and ``"unet"``, or a module from (m, *shape) to (m, outputs, *shape) with outputs = 1
            (scale), or 2 (scale, mean) when the mean is learned.
        positive: the map onto σ ≥ 0, ``"softplus"``, ``"abs"``, or ``"fixed-entropy"``, which keeps Σ_j log σ_j.
        initial_scale: σ (or w) where the generator's output is 0, in units of ``feature_scale``; a number, or a tensor
            of shape ``shape``.
        feature_scale: a tensor of shape ``shape``; ones if None.
        normalize: if given, every ε is rescaled so that its root mean square over live features, in units of
            ``feature_scale``, is this number.
        hidden: width of the ``mlp`` generator and of the heads of the ResNets.
        width: channels of the first stage of the ResNets, 64 if None, and of the U-Net, 32.
        encoder: the encoder whose features the ``shared`` generator reads.
        support: the rows that noise moves samples to, in the units of x.

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
        distribution: Distribution = "gaussian",
        mean: Mean = "zero",
        generator: str | nn.Module = "mlp",
        positive: Positive = "softplus",
        initial_scale: float | Tensor = 1.0,
        feature_scale: Tensor | None = None,
        normalize: float | None = None,
        hidden: int = 1024,
        width: int | None = None,
        encoder: nn.Module | None = None,
        support: Support | None = None,
    ) -> None:
        super().__init__()
        self.shape = check_shape(shape)
        if distribution not in REPARAMETERISATIONS:
            raise unknown_choice("distribution", distribution, REPARAMETERISATIONS)
        if positive not in SCALE_MAPS:
            raise unknown_choice("positive map", positive, SCALE_MAPS)
        if mean not in ("zero", "learned"):
            raise unknown_choice("mean", mean, ("zero", "learned"))
        if normalize is not None and not (normalize > 0 and math.isfinite(normalize)):
            raise UserError(f"normalize is {normalize}: it must be a positive number, or None.")
        if hidden < 1:
            raise UserError(f"hidden is {hidden}: the generator's width must be at least 1.")
        self.distribution = distribution
        self.positive = positive
        self.normalize = normalize
        self.outputs = 2 if mean == "learned" else 1
        if feature_scale is None:
            feature_scale = torch.ones(self.shape)
        self.register_buffer("feature_scale", check_feature_scale(feature_scale, self.shape))
        self.register_buffer("initial_scale", check_initial_scale(initial_scale, self.shape, least=SMALLEST_SCALE))
        self.support = support
        self.generator = (
            generator
            if isinstance(generator, nn.Module)
            else build_generator(
                generator, self.shape, outputs=self.outputs, hidden=hidden, width=width, encoder=encoder
            )
        )

    @classmethod
    def along(cls, data: Tensor, *, neighbours: int = NEIGHBOURS, most: int = 2048) -> PiNoise:
        """Return noise that moves samples along the data, the default of the library, for a loop of one's own.

        A sample goes to one of its nearest neighbours, plus noise of fixed entropy with one learned σ per feature.
        Add ``0.3 * noise.prior_distance(x)`` to the loss, call ``noise.before_step(step)`` before each step, and train
        ψ with ten times the encoder's learning rate.

        Args:
            data: training rows in any units, shape (n, *shape).
            neighbours: how many a sample has.
            most: how many rows are kept to move to, a random choice of more; they are part of the state.

        >>> data = torch.randn(50, 4)
        >>> noise = PiNoise.along(data)
        >>> first, second = data[:8] + noise.sample(data[:8], draws=2, rows=torch.arange(8))
        >>> first.shape, bool(noise.prior_distance(first) < 1e-6)
        (torch.Size([8, 4]), True)
        """
        if not isinstance(data, Tensor) or not data.is_floating_point() or data.ndim < 2:
            found = f"{data.ndim}-dimensional {data.dtype}" if isinstance(data, Tensor) else type(data).__name__
            raise UserError(f"data is {found}: give training rows as a tensor of floating-point numbers, (n, *shape).")
        deviation = data.detach().std(dim=0, correction=0)
        numbers = torch.arange(len(data))
        if len(data) > most:
            numbers = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:most].sort().values
        numbers = numbers.to(data.device)
        support = Support(data[numbers], numbers=numbers, rows=len(data), k=neighbours)
        support.refresh(deviation)
        return cls(
            tuple(data.shape[1:]),
            generator="global",
            positive="fixed-entropy",
            initial_scale=prior_scale(support.spread(), deviation),
            feature_scale=deviation,
            support=support,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return x + ε for a batch (m, *shape)."""
        return x + self.sample(x)

    def sample(
        self,
        x: Tensor,
        draws: int | None = None,
        features: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Draw ε of shape (m, *shape), or ``draws`` independent ones of shape (draws, m, *shape).

        Args:
            x: samples (m, *shape).
            draws: how many.
            features: the encoder's of x, for a ``shared`` generator, where the caller has them already.
            rows: the samples' row numbers, if they are the training rows that the support was made of.
        """
        noises = self.draw(x, 1 if draws is None else draws, features=features, rows=rows)
        epsilon = torch.stack([noise.epsilon for noise in noises])
        return epsilon[0] if draws is None else epsilon

    def draw(
        self, x: Tensor, times: int, *, features: Tensor | None = None, rows: Tensor | None = None
    ) -> tuple[Noise, ...]:
        """Draw independent ε from one pass through the generator, each with its σ; arguments as in ``sample``."""
        scale, mean = self._parameters_of_noise(x, features)
        draws = BASE_DRAWS[self.distribution](x.expand(times, *x.shape))
        noise_of = REPARAMETERISATIONS[self.distribution]
        unit = self.feature_scale
        if self.normalize is None:
            noise = noise_of(mean * unit if isinstance(mean, Tensor) else mean, scale * unit, draws)
        else:
            noise = unit * self.normalize * unit_rms(noise_of(mean, scale, draws), unit > 0)
        if self.support is not None:
            noise = noise + (self.support.draw(x, rows=rows, times=times) - x)
        return tuple(Noise(epsilon, scale) for epsilon in noise)

    def scale(self, x: Tensor) -> Tensor:
        """σ(x) (or w(x) of the uniform distribution), in the units of x, shape (m, *shape)."""
        return self.feature_scale * self.relative_scale(x)

    def relative_scale(self, x: Tensor) -> Tensor:
        """σ(x) in units of each feature's training standard deviation, 0 for dead features.

        Normalised noise has the σ that it gets by being normalised, up to the chance in one draw's own size.
        """
        return self._normalised(x)[0].expand_as(x)

    def mean(self, x: Tensor) -> Tensor:
        """μ(x) in the units of x, shape (m, *shape); for normalised noise as in ``relative_scale``."""
        mean = self._normalised(x)[1]
        return (self.feature_scale * mean).expand_as(x) if isinstance(mean, Tensor) else torch.zeros_like(x)

    def penalty(self, noise: Tensor) -> Tensor:
        """1 / mean‖ε‖₂, the paper's guard against vanishing noise; the caller weights it with λ."""
        return inverse_norm(noise)

    def prior_distance(self, x: Tensor) -> Tensor:
        """Mean (log σ − log r)² with r the initial scale: what keeps every feature noisy; the caller weights it."""
        return mean_log_ratio_squared(self._parameters_of_noise(x)[0], self.initial_scale)

    def before_step(self, step: int) -> None:
        """Let the neighbours follow the learned σ, every ``REFRESH_EVERY`` steps."""
        if self.support is not None and step % REFRESH_EVERY == 0:
            self.support.refresh(self.typical_scale())

    @torch.no_grad()
    def typical_scale(self) -> Tensor:
        """σ in the units of x, as the geometric mean over rows of the support, shape (*shape)."""
        if self.support is None:
            raise UserError("this noise has no support: its typical scale depends on samples, ask scale(x).")
        bank = self.support.bank
        size = min(_TYPICAL_ROWS, len(bank))  # from all over a bank that may be sorted
        with evaluating(self.generator):
            scale, _ = self._parameters_of_noise(bank[torch.arange(size, device=bank.device) * len(bank) // size])
        return self.feature_scale * scale.clamp_min(SMALLEST_SCALE).log().mean(dim=0).exp()

    @property
    def shares_features(self) -> bool:
        """Whether the generator reads the encoder's features of x."""
        return isinstance(self.generator, SharedGenerator)

    def _parameters_of_noise(self, x: Tensor, features: Tensor | None = None) -> tuple[Tensor, Tensor | float]:
        """The relative σ and μ of every sample, or of all together: one pass through the generator."""
        if x.shape[1:] != self.shape:
            raise UserError(f"samples have shape {tuple(x.shape[1:])}: this noise was made for {self.shape}.")
        live = (self.feature_scale > 0).to(x.dtype)
        raw = self.generator(x, features) if features is not None and self.shares_features else self.generator(x)
        size = math.prod(self.shape) * self.outputs
        if raw.numel() not in (size, x.shape[0] * size):
            raise UserError(
                f"the generator returned shape {tuple(raw.shape)} for {x.shape[0]} samples: "
                f"it must return {(x.shape[0], self.outputs, *self.shape)}, or one entry for all samples."
            )
        raw = raw.reshape(-1, self.outputs, *self.shape)
        scale = SCALE_MAPS[self.positive](raw[:, 0], self.initial_scale, live).clamp_min(SMALLEST_SCALE)
        return live * scale, live * raw[:, 1] if self.outputs == 2 else 0.0

    def _normalised(self, x: Tensor) -> tuple[Tensor, Tensor | float]:
        """The relative σ and μ of every sample, or of all together, as ``normalize`` leaves them."""
        scale, mean = self._parameters_of_noise(x)
        if self.normalize is None:
            return scale, mean
        rms = expected_rms(mean, scale, self.feature_scale > 0, variance=BASE_VARIANCES[self.distribution])
        factor = self.normalize / rms
        return scale * factor, mean * factor

    def extra_repr(self) -> str:
        """Name the settings in the module's repr."""
        mean = "learned" if self.outputs == 2 else "zero"
        return f"{self.shape}, distribution={self.distribution}, mean={mean}, positive={self.positive}"
