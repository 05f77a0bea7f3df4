"""PiNoise: the π-noise generator as one module for anyone's training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pinoise.choices import GENERATOR, Distribution, Mean, ScaleMap, find, options_of
from pinoise.errors import UserError, unknown_choice
from pinoise.networks.blocks import evaluating
from pinoise.noise.checks import check_feature_scale, check_initial_scale, check_shape
from pinoise.noise.distributions import (
    BASE_DRAWS,
    BASE_VARIANCES,
    REPARAMETERISATIONS,
    expected_rms,
    unit_rms,
)
from pinoise.noise.generators import GlobalGenerator, SharedGenerator, make_generator
from pinoise.noise.prior import PRIOR_WEIGHT, inverse_norm, mean_log_ratio_squared, prior_scale
from pinoise.noise.scale_maps import SCALE_MAPS
from pinoise.noise.support import NEIGHBOURS, Support

# Less than this share of a standard deviation is no noise: σ is held there and stops learning, which keeps its
# gradients clear of denormal numbers; arithmetic with those is many times slower.
SMALLEST_SCALE = 1e-6

REFRESH_EVERY = 50
"""Draws in training between looks at whether the learned σ, the metric in which neighbours are found, has moved."""

GLOBAL_RATE = 10
"""How many times the encoder's learning rate a ``global`` generator takes: its numbers have as far to go as the output
of a network, with one step of their own at a time."""

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
            ``"resnet50"`` and ``"unet"``; or your own: a module from (m, *shape) to (m, outputs, *shape) with outputs =
            1 (scale), or 2 (scale, mean) when the mean is learned, or what makes one from the shape and the outputs.
        positive: the map onto σ ≥ 0, ``"softplus"``, ``"abs"``, or ``"fixed-entropy"``, which keeps Σ_j log σ_j.
        initial_scale: σ (or w) where the generator's output is 0, in units of ``feature_scale``; a number, or a tensor
            of shape ``shape``. None is how much neighbours in the support differ, or 1 without a support.
        feature_scale: a tensor of shape ``shape``; ones if None.
        normalize: if given, every ε is rescaled so that its root mean square over live features, in units of
            ``feature_scale``, is this number.
        hidden: width of a generator's fully connected layers; the generator's own if None.
        width: channels of a generator for images; the generator's own if None.
        encoder: the encoder whose features the ``shared`` generator reads.
        support: the rows that noise moves samples to, in the units of x.
        weight: λ of ``regularizer``.

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
        generator: Any = "mlp",
        positive: ScaleMap = "softplus",
        initial_scale: float | Tensor | None = None,
        feature_scale: Tensor | None = None,
        normalize: float | None = None,
        hidden: int | None = None,
        width: int | None = None,
        encoder: nn.Module | None = None,
        support: Support | None = None,
        weight: float = 0.0,
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
        if hidden is not None and hidden < 1:
            raise UserError(f"hidden is {hidden}: the generator's width must be at least 1.")
        self.distribution = distribution
        self.positive = positive
        self.normalize = normalize
        self.outputs = 2 if mean == "learned" else 1
        self.weight = weight
        unit = check_feature_scale(torch.ones(self.shape) if feature_scale is None else feature_scale, self.shape)
        self.register_buffer("feature_scale", unit)
        if initial_scale is None:
            initial_scale = 1.0 if support is None else self._prior_of(support)
        self.register_buffer("initial_scale", check_initial_scale(initial_scale, self.shape, least=SMALLEST_SCALE))
        self.support = support
        given = {name: value for name, value in (("hidden", hidden), ("width", width)) if value is not None}
        if isinstance(generator, str) and (part := find(GENERATOR, generator)) is not None:
            given = {name: value for name, value in given.items() if name in options_of(part)}
        self.generator = make_generator(generator, self.shape, self.outputs, encoder=encoder, options=given)

    def _prior_of(self, support: Support) -> Tensor:
        """Return r, how much neighbours differ, as the scale of this distribution."""
        # w of uniform noise on (−w, w) is √3 times its standard deviation.
        factor = 1 / math.sqrt(BASE_VARIANCES[self.distribution])
        return prior_scale(support.spread(), self.feature_scale) * factor

    @classmethod
    def along(cls, data: Tensor, *, neighbours: int = NEIGHBOURS, weight: float = PRIOR_WEIGHT) -> PiNoise:
        """Return noise that moves samples along the data, the default of the library, for a loop of one's own.

        A sample goes to one of its nearest neighbours, plus noise of fixed entropy with one learned σ per feature. The
        neighbours follow σ while the module is in train mode; compiled noise needs a call of ``follow`` now and then.
        Three lines of a loop need it::

            optimizer = torch.optim.Adam([{"params": encoder.parameters()}, *noise.param_groups(1e-3)], lr=1e-3)
            first, second = noise.views(x, rows)
            loss = nt_xent(encoder(first), encoder(second)).mean() + noise.regularizer(x)

        Args:
            data: training rows in any units, shape (n, *shape). Up to 2,048 of them are kept to move to, a random
                choice of more; they are part of the state.
            neighbours: how many a sample has.
            weight: λ of ``regularizer``.

        >>> data = torch.randn(50, 4)
        >>> noise = PiNoise.along(data)
        >>> first, second = noise.views(data[:8], torch.arange(8))
        >>> first.shape, bool(noise.regularizer(first) < 1e-6)
        (torch.Size([8, 4]), True)
        """
        if not isinstance(data, Tensor) or not data.is_floating_point() or data.ndim < 2:
            found = f"{data.ndim}-dimensional {data.dtype}" if isinstance(data, Tensor) else type(data).__name__
            raise UserError(f"data is {found}: give training rows as a tensor of floating-point numbers, (n, *shape).")
        data = data.detach()
        deviation = data.std(dim=0, correction=0)
        support = Support.of(data, k=neighbours)
        support.refresh(deviation)
        return cls(
            tuple(data.shape[1:]),
            generator="global",
            positive="fixed-entropy",
            feature_scale=deviation,
            support=support,
            weight=weight,
        )

    def param_groups(self, lr: float) -> list[dict[str, Any]]:
        """Return ψ for an optimiser, with the learning rate that suits the generator.

        Args:
            lr: the encoder's learning rate.

        >>> [group["lr"] for group in PiNoise(4, generator="global").param_groups(0.5)]
        [5.0]
        """
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rate = lr * GLOBAL_RATE if isinstance(self.generator, GlobalGenerator) else lr
        return [{"params": learning, "lr": rate}] if learning else []

    def views(self, x: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return two noisy views of samples, x + ε and x + ε'; arguments as in ``sample``."""
        first, second = x + self.sample(x, draws=2, rows=rows)
        return first, second

    def regularizer(self, x: Tensor) -> Tensor:
        """λ · mean (log σ − log r)² with r the initial scale: what keeps every feature noisy. Add it to the loss."""
        return self.weight * mean_log_ratio_squared(self._parameters_of_noise(x)[0], self.initial_scale)

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
            rows: the samples' numbers among the training rows that the support was made of, where they are known: the
                neighbours of a training row are then looked up, not searched for. Numbers of other samples are refused;
                training looks at them at its first draw and every 50 draws.
        """
        noises = self.draw(x, 1 if draws is None else draws, features=features, rows=rows)
        epsilon = torch.stack([noise.epsilon for noise in noises])
        return epsilon[0] if draws is None else epsilon

    def draw(
        self, x: Tensor, times: int, *, features: Tensor | None = None, rows: Tensor | None = None
    ) -> tuple[Noise, ...]:
        """Draw independent ε from one pass through the generator, each with its σ; arguments as in ``sample``."""
        scale, mean = self._parameters_of_noise(x, features)
        # To look at a counter would break a compiled graph; compiled noise keeps the neighbours that it has.
        if self.support is not None and not torch.compiler.is_compiling():
            self._follow(self.support, x, rows)
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

    def _follow(self, support: Support, x: Tensor, rows: Tensor | None) -> None:
        """Check the row numbers and let the neighbours follow σ, in training every ``REFRESH_EVERY`` draws."""
        due = support.drawn % REFRESH_EVERY == 0
        if rows is not None and (due or not self.training):
            support.check_rows(x, rows)
        if self.training:
            if due:
                self.follow()
            support.count_draw()

    def follow(self) -> None:
        """Let the neighbours follow the learned σ now; noise that is compiled does not do so by itself."""
        if self.support is not None:
            # In full precision, also where the step that this belongs to rounds.
            with torch.autocast(self.support.bank.device.type, enabled=False):
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
