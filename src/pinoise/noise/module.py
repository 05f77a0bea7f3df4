"""PiNoise: π-noise as one module for any training loop, made of σ, a draw and a move along the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import torch
from torch import Tensor, distributions, nn

from pinoise import choices
from pinoise.errors import UserError, unknown_choice
from pinoise.noise.columns import Columns, check_columns
from pinoise.noise.draw import COVARIANCES, FAMILIES, Diagonal, Noise
from pinoise.noise.generators import PAPERS_GENERATOR, sized_generator
from pinoise.noise.sigma import PRIOR_WEIGHT, SMALLEST_SCALE, Sigma, check_scale, check_shape, prior_scale
from pinoise.noise.support import NEIGHBOURS, Support


class PiNoise(Sigma):
    """Learned noise ε ~ p_ψ(ε|x), added to x (Algorithm 1 of the paper).

    Noise is measured in units of ``feature_scale``, the standard deviation of each feature in the training data. A
    feature whose scale is 0 is dead and gets no noise. With a ``support`` the noise moves a sample along the data: ε is
    the step to one of the sample's neighbours plus a draw from the distribution. Neighbours are the nearest rows by
    distance in units of the learned σ.

    Args:
        shape: the shape of one sample, or the number of features.
        distribution: ``"gaussian"``, ε = μ + σ ⊙ n, or ``"uniform"``, ε = μ + (2u − 1) ⊙ w.
        mean: ``"zero"`` fixes μ = 0, ``"learned"`` makes it an output of the generator.
        generator: ``"mlp"``, ``"shared"``, ``"global"``, ``"constant"``, for images (C, H, W) also ``"resnet18"``,
            ``"resnet50"`` and ``"unet"``; or your own, as ``pinoise.noise.generators`` has it.
        positive: the map to σ ≥ 0: ``"softplus"``, ``"abs"``, or ``"fixed-entropy"``, which keeps Σ_j log σ_j constant.
        initial_scale: σ (or w) for a generator output of 0, in units of ``feature_scale``, for all features or for
            each. None is ``amplitude`` times the spread of neighbours in the support, or 1 without one.
        feature_scale: the standard deviation of each feature; ones if None.
        normalize: the root mean square of every ε, over live features and in units of ``feature_scale``, if not None.
        hidden: width of a generator's fully connected layers; the generator's default if None.
        width: channels of a generator for images; the generator's default if None.
        encoder: the encoder whose features the ``shared`` generator reads.
        support: training rows and their neighbours, in the units of x.
        covariance: how the noise of different features goes together, a class of ``pinoise.noise.draw``. All but
            ``"diagonal"`` need a support: ``"differences"``, ``"low-rank"`` and ``"mixed"``.
        amplitude: σ at the start as a multiple of the spread of neighbours. None is 1, or 2 for correlated noise
            without a step to a neighbour.
        moves: whether samples move to their neighbours in the support.
        weight: λ of ``regularizer``.
        columns: the columns that became several features, such as categories. Each has one σ and moves as a whole.
        donors: rows from which such columns are taken, shape (n, d), if there is no support.

    >>> noise = PiNoise(4, hidden=8)
    >>> x = torch.zeros(3, 4)
    >>> noise(x).shape, noise.scale(x).shape, bool((noise.mean(x) == 0).all())
    (torch.Size([3, 4]), torch.Size([3, 4]), True)
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        distribution: choices.Distribution = choices.DISTRIBUTION,
        mean: choices.Mean = choices.MEAN,
        generator: Any = PAPERS_GENERATOR,
        positive: choices.ScaleMap = choices.SCALE_MAP,
        initial_scale: float | Tensor | None = None,
        feature_scale: Tensor | None = None,
        normalize: float | None = None,
        hidden: int | None = None,
        width: int | None = None,
        encoder: nn.Module | None = None,
        support: Support | None = None,
        covariance: choices.Covariance = choices.INDEPENDENT,
        amplitude: float | None = None,
        moves: bool = True,
        weight: float = 0.0,
        columns: Columns | None = None,
        donors: Tensor | None = None,
    ) -> None:
        sizes = check_shape(shape)
        check_columns(columns, sizes, has_donors=support is not None or donors is not None)
        check_names(distribution, mean, positive, normalize)
        check_covariance(covariance, distribution, amplitude, initial_scale, has_support=support is not None)
        unit = check_scale("feature_scale", 1.0 if feature_scale is None else feature_scale, sizes, least=0)
        drawing, family = COVARIANCES[covariance], FAMILIES[distribution]
        moves = moves and support is not None
        if initial_scale is None:
            # w of uniform noise on (−w, w) is √3 times its standard deviation.
            factor = (amplitude or (1.0 if moves else drawing.amplitude)) / math.sqrt(family.variance)
            initial_scale = 1.0 if support is None else prior_scale(support.spread(), unit, columns) * factor
        super().__init__()
        self.shape, self.columns = sizes, columns
        self.distribution, self.positive, self.normalize, self.weight = distribution, positive, normalize, weight
        self.outputs = 2 if mean == "learned" else 1
        self.register_buffer("feature_scale", unit)
        start = check_scale("initial_scale", initial_scale, sizes, least=SMALLEST_SCALE)
        self.register_buffer("initial_scale", start)
        self.register_buffer("donors", None if columns is None or support is not None else donors)
        self.generator = sized_generator(generator, sizes, self.outputs, encoder=encoder, hidden=hidden, width=width)
        self.covariance = covariance
        self.moves = moves
        self.support = support
        self.drawing: Diagonal = drawing(family, columns)

    @classmethod
    def along(
        cls,
        data: Tensor,
        *,
        neighbours: int = NEIGHBOURS,
        covariance: choices.Covariance = choices.ALONG_COVARIANCE,
        amplitude: float | None = None,
        weight: float = PRIOR_WEIGHT,
        columns: Columns | None = None,
    ) -> PiNoise:
        """Return the library's default noise, which moves samples along the data, for your own training loop.

        A sample moves to one of its nearest neighbours and gets noise of fixed entropy with one learned σ per feature,
        or it moves by a difference between two other neighbours. In train mode the neighbours follow σ; compiled noise
        needs a call of ``follow`` from time to time.

        Data are training rows in any units, shape (n, *shape). At most 2,048 of them, chosen at random, are kept as
        neighbours, as part of the state. With 0 neighbours, samples do not move. The other arguments are as above.

        >>> data = torch.randn(50, 4)
        >>> noise = PiNoise.along(data)
        >>> first, second = noise.views(data[:8], torch.arange(8))
        >>> first.shape, bool(noise.regularizer(first) < 1e-6)
        (torch.Size([8, 4]), True)
        """
        check_along(data, neighbours)
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
        noise.drawing.settle(support)
        return noise

    def views(self, x: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return two noisy views of samples, x + ε and x + ε'. Arguments are as in ``sample``."""
        first, second = x + self.sample(x, draws=2, rows=rows)
        return first, second

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
        """Draw ε of shape (m, *shape), or ``draws`` independent ones of shape (draws, m, *shape), after ``keep_up``.

        Args:
            x: samples (m, *shape).
            draws: the number of independent draws; None for a single one.
            features: the encoder's features of x for a ``shared`` generator, if the caller has them already.
            rows: the samples' row numbers in the training data of the support, if they are known. The neighbours of a
                training row are then looked up, not searched. Wrong numbers are refused; in training they are checked
                at the first draw and then every 50 draws.
            generator: where random numbers come from; None is torch's global generator.
        """
        self.keep_up(x, rows)
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
        """Draw independent ε, each with its σ, from one pass through the generator, among neighbours as they are.

        Arguments are as in ``sample``.
        """
        scale, mean = self.parameters_of(x, features)
        drawn = self.drawing.draw(x, times, self.support, generator)
        noise = self.spread_by(scale, mean, drawn.n)
        there = x
        if self.support is not None and self.moves:
            step = self.support.draw(x, rows=rows, times=times, generator=generator) - x
            step = step if drawn.stays is None else torch.where(drawn.stays, 0, step)
            noise, there = noise + step, x + step
        if self.columns is not None:
            sigma, unit = self.normalised(scale, mean)[0], self.feature_scale
            rest: dict[str, Any] = {"donors": self.donors, "support": self.support, "moves": self.moves}
            whole = self.drawing.redraw(there.expand_as(noise), drawn, sigma, unit, generator=generator, **rest)
            noise = torch.where(self.columns.several, whole - x, noise)
        return tuple(Noise(epsilon, scale) for epsilon in noise)

    def keep_up(self, x: Tensor, rows: Tensor | None = None) -> None:
        """Check the row numbers and, in training, let the neighbours follow σ every 50 draws.

        Compiled noise keeps its neighbours, because to read the counter would break its graph.
        """
        if self.support is None or torch.compiler.is_compiling():
            return
        if self.support.due(x, rows if self.moves else None, training=self.training):
            self.follow()

    def follow(self) -> None:
        """Update the neighbours to the learned σ now. Compiled noise does not do this by itself.

        Noise that is moved to a device or loaded from a file, and then compiled as one graph, needs a call, too.
        """
        if self.support is not None:
            # In full precision, also inside a training step with autocast.
            with torch.autocast(self.support.bank.device.type, enabled=False):
                self.support.refresh(self.typical_scale(self.support.bank))
                self.drawing.settle(self.support)

    def law(self, x: Tensor) -> distributions.Distribution:
        """Return p_ψ(ε|x) over live features, in double precision, for noise that has a density.

        >>> PiNoise(2, generator="constant").law(torch.zeros(1, 2)).variance
        tensor([[1., 1.]], dtype=torch.float64)
        """
        if self.moves or self.normalize is not None or self.columns is not None:
            raise UserError("this noise has no density: choose no neighbours, no normalize and no categories.")
        return self.drawing.law(self.mean(x), self.scale(x), self.live, self.support)


def check_names(distribution: str, mean: str, positive: str, normalize: float | None) -> None:
    """Refuse names that stand for nothing, and a root mean square that is none."""
    for kind, name, known in (
        ("distribution", distribution, choices.Distribution),
        ("mean", mean, choices.Mean),
        ("positive map", positive, choices.ScaleMap),
    ):
        if name not in get_args(known):
            raise unknown_choice(kind, name, get_args(known))
    if normalize is not None and not (normalize > 0 and math.isfinite(normalize)):
        raise UserError(f"normalize is {normalize}: it must be a positive number, or None.")


def check_covariance(
    covariance: str, distribution: str, amplitude: float | None, initial_scale: object, *, has_support: bool
) -> None:
    """Refuse a covariance that is unknown or does not fit the other arguments of ``PiNoise``.

    >>> check_covariance("differences", "gaussian", None, None, has_support=False)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: covariance 'differences' is that of neighbours in the data: give a support.
    """
    if covariance not in COVARIANCES:
        raise unknown_choice("covariance", covariance, COVARIANCES)
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


def check_along(data: object, neighbours: int) -> None:
    """Refuse training rows or a number of neighbours that ``PiNoise.along`` cannot take.

    >>> check_along(torch.zeros(3, 2), -1)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: neighbours is -1: give a whole number, or 0 for noise that does not move samples.
    """
    if not isinstance(data, Tensor) or not data.is_floating_point() or data.ndim < 2:
        found = f"{data.ndim}-dimensional {data.dtype}" if isinstance(data, Tensor) else type(data).__name__
        raise UserError(f"data is {found}: give training rows as a tensor of floating-point numbers, (n, *shape).")
    if not bool(torch.isfinite(data).all()):
        raise UserError("data has an entry that is nan or infinite: fill it in or leave its row out.")
    if not isinstance(neighbours, int) or neighbours < 0:
        raise UserError(f"neighbours is {neighbours}: give a whole number, or 0 for noise that does not move samples.")
