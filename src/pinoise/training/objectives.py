"""What is trained, and for what: objectives, and the module that composes views, a method and an objective.

A look draws views of a batch and computes their losses. An objective states how the gradient of a look reaches ψ and
how many looks it needs, and maps them to the scalar to minimise. The model takes the looks.

Where several processes train together, each minimises its own scalar and their gradients are averaged. A mean over
samples is then the mean over the samples of all. What is not such a mean gathers the numbers that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, ClassVar, NamedTuple

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.func import functional_call

from pinoise import choices
from pinoise.errors import UserError, shown
from pinoise.information import mutual_information
from pinoise.methods import Method
from pinoise.methods.base import joined
from pinoise.methods.gathering import gather
from pinoise.modes import Randomness
from pinoise.networks import has_batch_norm
from pinoise.noise import NEIGHBOURS, PRIOR_WEIGHT, Columns, Noise, PiNoise, inverse_norm, mean_log_ratio_squared
from pinoise.noise.generators import PAPERS_GENERATOR
from pinoise.views import Batch, Pairing, Site


class Look(NamedTuple):
    """One look at a batch: its losses under newly drawn views, and these views, of which some may have learned noise.

    >>> view = Batch(torch.ones(2, 1), torch.arange(2), Noise(torch.full((2, 1), 0.5), torch.ones(1, 1)))
    >>> Look(torch.ones(2), [view, view]).epsilon.flatten()
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """

    losses: Tensor  # (m,): ℓ of every sample
    views: Sequence[Batch] = ()

    @property
    def noises(self) -> list[Noise]:
        """The noise of every view that has any."""
        return [view.noise for view in self.views if view.noise is not None]

    @property
    def epsilon(self) -> Tensor:
        """ε of all views that have noise, along the batch, shape (n, *shape)."""
        return joined([noise.epsilon for noise in self.noises])

    @property
    def scale(self) -> Tensor:
        """σ of all views that have noise, along the batch, or (1, *shape) if it is one for all."""
        scales = [noise.scale for noise in self.noises]
        one_for_all = len(scales[0]) == 1 and all(scale is scales[0] for scale in scales)
        return scales[0] if one_for_all else torch.cat(scales)

    @property
    def drew(self) -> Tensor | None:
        """Which entries of ε and σ were drawn, shape (n,); None for all of them."""
        noisy = [view for view in self.views if view.noise is not None]
        if all(view.drew is None for view in noisy):
            return None
        every = torch.ones_like(noisy[0].rows, dtype=torch.bool)
        return torch.cat([every if view.drew is None else view.drew for view in noisy])


class Objective(nn.Module):
    """What θ and ψ optimise: the mean of ℓ, unless a subclass overrides ``forward``."""

    psi: ClassVar[float] = 1.0
    """The factor on the gradient that reaches ψ in the look from which θ learns."""

    learns_noise: ClassVar[bool] = True
    generator: ClassVar[str] = PAPERS_GENERATOR
    image_generator: ClassVar[str] = "resnet18"
    positive: ClassVar[choices.ScaleMap] = choices.SCALE_MAP
    covariance: ClassVar[choices.Covariance] = choices.INDEPENDENT
    image_covariance: ClassVar[choices.Covariance] = choices.INDEPENDENT
    neighbours: ClassVar[int] = 0
    pairing: ClassVar[choices.PairingName] = "identity-noise"
    """The defaults of the noise, for settings that the configuration leaves open."""

    further_looks: int = 0
    """The number of further looks, from which ψ alone learns."""

    @classmethod
    def build(cls, site: Site, **options: Any) -> Objective:
        """Return the objective. ``site.noise`` is the noise that it trains, or None if all views are predefined."""
        return cls(**options)

    def forward(self, look: Look, further: Sequence[Look] = ()) -> Tensor:
        """Return the scalar to minimise."""
        return look.losses.mean()


class Supported(Objective):
    """Data-supported π-noise: min over θ and ψ of mean ℓ(x, ε) + λ · mean (log σ − log r)², with noise along the data.

    θ and ψ cooperate as in the paper, but the noise cannot collapse. ψ cannot make the views easier by making less
    noise, because ``fixed-entropy`` noise only moves between features. r, the spread of neighbours in each feature,
    keeps noise in every feature. A feature without noise would let the encoder tell samples apart by that feature
    alone.

    Args:
        prior: r, in standard deviations of each feature, shape (*shape).
        columns: the columns that became several features and share one σ.
        weight: λ.

    >>> view = Batch(torch.zeros(2, 1), torch.arange(2), Noise(torch.zeros(2, 1), torch.full((1, 1), torch.e)))
    >>> Supported(torch.ones(1), weight=0.5)(Look(torch.ones(2), [view]))
    tensor(1.5000)
    """

    generator = "global"
    image_generator = "shared"
    positive = "fixed-entropy"
    covariance = choices.ALONG_COVARIANCE
    neighbours = NEIGHBOURS
    pairing = "noise-noise"
    prior: Tensor

    def __init__(
        self, prior: Tensor, columns: Columns | None = None, /, *, weight: choices.NonNegative = PRIOR_WEIGHT
    ) -> None:
        super().__init__()
        self.register_buffer("prior", prior if columns is None else columns.largest(prior))
        self.columns = columns
        self.weight = weight

    @classmethod
    def build(cls, site: Site, **options: Any) -> Objective:
        """Return the objective for the noise."""
        if site.noise is None:
            return Fixed()  # predefined views alone: there is no noise to train
        return cls(site.noise.initial_scale.clone(), site.columns, **options)

    def forward(self, look: Look, further: Sequence[Look] = ()) -> Tensor:
        """Return the mean loss plus the weighted distance from the prior."""
        loss = look.losses.mean()
        if self.weight and look.noises:
            scale = look.scale if self.columns is None else self.columns.largest(look.scale)
            loss = loss + self.weight * mean_log_ratio_squared(scale, self.prior, look.drew, joined=gather)
        return loss


class Paper(Objective):
    """The paper's objective: min over θ and ψ of mean ℓ(x, ε) + λ / mean‖ε‖₂ (Eq. 17, and the penalty for images).

    With λ = 0, the paper's choice for vectors, σ tends to 0: less noise makes the two views easier to match.

    Args:
        penalty: λ.

    >>> noise = Noise(torch.tensor([[3.0, 4.0], [0.0, 5.0]]), torch.ones(2, 2))
    >>> Paper(penalty=0.5)(Look(torch.tensor([1.0, 3.0]), [Batch(torch.zeros(2, 2), torch.arange(2), noise)]))
    tensor(2.1000)
    """

    def __init__(self, *, penalty: choices.NonNegative = 0.0) -> None:
        super().__init__()
        self.penalty = penalty

    def forward(self, look: Look, further: Sequence[Look] = ()) -> Tensor:
        """Return the penalised mean loss."""
        loss = look.losses.mean()
        if self.penalty and look.noises:
            loss = loss + self.penalty * inverse_norm(look.epsilon, look.drew, joined=gather)
        return loss


class Fixed(Objective):
    """Noise that is not learned: min over θ of mean ℓ(x, ε), with σ at its initial value (the paper's Random Noise).

    >>> Fixed()(Look(torch.tensor([1.0, 3.0])))
    tensor(2.)
    """

    psi = 0.0
    learns_noise = False


class Adversarial(Objective):
    """Noise against the encoder, as in Viewmaker (Tamkin et al., 2021): min over θ, max over ψ of mean ℓ(x, ε).

    This objective does not bound the noise. Its scale map or a budget must.
    """

    psi = -1.0  # the look reverses the gradient
    positive = "fixed-entropy"


Draws = Annotated[int, Interval(ge=2, le=64)]


class Information(Objective):
    """Noise with the most information on the task: min over θ of mean ℓ(x, ε), max over ψ of the exact information.

    The information needs the losses of each sample under several draws, so each step takes ``draws`` further looks.

    Args:
        draws: the number of draws.
    """

    psi = 0.0

    def __init__(self, *, draws: Draws = 4) -> None:
        super().__init__()
        self.further_looks = choices.within("draws", draws, Draws)

    def forward(self, look: Look, further: Sequence[Look] = ()) -> Tensor:
        """Return the mean loss minus the mean information."""
        under_draws = torch.stack([again.losses for again in further], dim=1)  # (m, K)
        information = mutual_information(under_draws, points=64)  # enough for a gradient, at half the cost
        return look.losses.mean() - information.mean()


class FunctionObjective(Objective):
    """A user's own function from a look to the scalar that both θ and ψ minimise.

    >>> FunctionObjective(lambda look: look.losses.max())(Look(torch.tensor([1.0, 3.0])))
    tensor(3.)
    """

    def __init__(self, function: Callable[[Look], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, look: Look, further: Sequence[Look] = ()) -> Tensor:
        """Return the function's value for the look."""
        return self.function(look)


class Step(NamedTuple):
    """What one training step computes."""

    loss: Tensor  # (): what is minimised
    losses: Tensor  # (m,): ℓ of every sample


class ContrastiveModel(nn.Module):
    """PiNDA and related models: a pairing makes views, a method makes losses, an objective makes the loss to minimise.

    Args:
        pairing: makes the views.
        method: makes the losses.
        objective: makes the loss to minimise.
        foreign: whether a part may draw from torch's global generator, as dropout does. The parts of the package draw
            from ``Batch.random`` alone.

    >>> import torch
    >>> from pinoise.methods import SimCLR
    >>> from pinoise.networks import MLPEncoder, ProjectionHead
    >>> from pinoise.training.objectives import Paper
    >>> from pinoise.views import PiNoiseView
    >>> model = ContrastiveModel(
    ...     pairing=Pairing("identity-noise", noise=PiNoiseView(PiNoise(3, hidden=4))),
    ...     method=SimCLR(MLPEncoder((3,), hidden=4, out_features=2), ProjectionHead(2)),
    ...     objective=Paper(),
    ... )
    >>> model(Batch(torch.randn(5, 3), torch.arange(5))).losses.shape
    torch.Size([5])
    """

    def __init__(self, *, pairing: Pairing, method: Method, objective: Objective, foreign: bool = True) -> None:
        super().__init__()
        self.foreign = foreign
        self.pairing = pairing
        self.method = method
        self.objective = objective

    def forward(self, batch: Batch) -> Step:
        """Return the scalar to minimise and the loss of every sample."""
        with self.drawing_from(batch.random):
            look = self.look(batch, psi=self.objective.psi)
            further = [self.look(batch, theta=False) for _ in range(self.objective.further_looks)]
            loss = self.objective(look, further)
        if not isinstance(loss, Tensor) or loss.ndim:
            raise UserError(f"the objective returned {shown(loss)}: it must return a scalar like look.losses.mean().")
        return Step(loss, look.losses.detach())

    def drawing_from(self, random: Randomness | None) -> AbstractContextManager[None]:
        """Return a context in which parts of a user, which know only torch's global generator, draw from a source."""
        if random is None or not self.foreign:
            return nullcontext()
        return random.lent(next(self.parameters()).device)

    def look(self, batch: Batch, *, theta: bool = True, psi: float = 1.0) -> Look:
        """Draw views of the batch and compare them.

        Args:
            batch: samples and their rows.
            theta: whether the gradient of the losses reaches the method's weights.
            psi: the factor on the gradient that reaches the noise.
        """
        shares = theta and self.pairing.keeps_original and self.noise is not None and self.noise.shares_features
        if shares and not has_batch_norm(self.method.encoder):  # its features depend on mode and batch
            # x is itself a view, so the noise generator can use the features of that pass.
            batch = batch._replace(features=self.method.encoder(batch.x))
        views = [view.with_gradient(psi) for view in self.pairing(batch)]
        return Look(self._losses(views, theta=theta), views)

    def clean_losses(self, batch: Batch) -> Tensor:
        """Return ℓ(x) of every sample (m,), with the sample itself as each view."""
        return self._losses([batch] if self.pairing.name == "identity" else [batch, batch], theta=True)

    def _losses(self, views: Sequence[Batch], *, theta: bool) -> Tensor:
        if theta:
            losses: Tensor = self.method(views)
        else:
            frozen = {name: weight.detach() for name, weight in self.method.named_parameters()}
            losses = functional_call(self.method, frozen, (views,))
        size = len(views[0].x)
        if not isinstance(losses, Tensor) or losses.shape != (size,):
            raise UserError(
                f"the method returned {shown(losses)} for {size} samples: it must return one loss per sample."
            )
        return losses

    @property
    def noise(self) -> PiNoise | None:
        """The learned noise, or None if all views are predefined."""
        return None if self.pairing.noise is None else self.pairing.noise.learned

    def after_step(self, step: int, steps: int) -> None:
        """Let the method update its state after the optimiser's step. ``step`` counts from 0 to ``steps`` − 1."""
        self.method.after_step(step, steps)
