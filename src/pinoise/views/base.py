"""The contract of a view, what the parts of a model are built from, and how views are paired: Algorithms 1 and 2.

A view is a module from a batch to a batch, run on the device inside the training step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pinoise.choices import PAIRINGS, PairingName
from pinoise.errors import UserError, unknown_choice
from pinoise.modes import Randomness
from pinoise.networks import ProjectionHead
from pinoise.networks.mlp import width_of
from pinoise.noise import Columns, Noise, PiNoise, TrainingRows


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return x with its gradient multiplied by ``factor``: 0 stops the gradient, −1 reverses it.

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.grad(3 * scale_gradient(x, -1.0).sum(), x)
    (tensor([-3.]),)
    """
    return torch.lerp(x.detach(), x, factor) if factor else x.detach()


class Batch(NamedTuple):
    """Samples, their row numbers in the training data, and the learned noise in them, if any."""

    x: Tensor  # (m, *shape)
    rows: Tensor  # (m,)
    noise: Noise | None = None  # ε and its σ, so that an objective can judge them
    drew: Tensor | None = None  # (m,): which samples received ε; all of them if None
    features: Tensor | None = None  # (m, dim): f_θ of these samples, if it is known already
    random: Randomness | None = None  # where views draw from; torch's global generator if None

    @property
    def generator(self) -> torch.Generator | None:
        """The generator to draw from on the device of the samples; None for torch's global one."""
        return None if self.random is None else self.random.on(self.x.device)

    def moved(self, x: Tensor) -> Batch:
        """Return the batch with other samples in the same rows, and without the features of the old ones."""
        return self._replace(x=x, features=None)

    def with_gradient(self, factor: float) -> Batch:
        """Return the same batch, with its gradient multiplied by a factor in the backward pass."""
        if factor == 1:
            return self
        noise = None if self.noise is None else Noise(*(scale_gradient(part, factor) for part in self.noise))
        return self._replace(x=scale_gradient(self.x, factor), noise=noise)


@dataclass(frozen=True)
class Site:
    """What a method, a view or an objective is built from. Each takes what it needs."""

    unit: Tensor  # (*shape): the standard deviation of every standardised feature, the unit of noise; 0 for dead ones
    rows: TrainingRows  # the training samples, standardised
    encoder: nn.Module  # f_θ
    head_hidden: int
    head_features: int
    batch_size: int  # rows in a step, of all processes together
    local_crops: int = 0
    device: str = "cpu"
    noise: PiNoise | None = None  # the learned noise, for an objective
    columns: Columns | None = None  # the columns of a table that became several features, if there are any
    pixel_mean: Tensor | None = None  # (C,): for images, a pixel between 0 and 1 is x · pixel_scale + pixel_mean
    pixel_scale: Tensor | None = None  # (C,)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.unit.shape)

    @property
    def features(self) -> int:
        """The width of the encoder's output."""
        return width_of("encoder", self.encoder)

    @property
    def numeric_unit(self) -> Tensor:
        """The unit of every feature, 0 for those that only move as a whole, such as categories."""
        return self.unit if self.columns is None else self.unit * ~self.columns.several

    def projection_head(self, kind: type[ProjectionHead] = ProjectionHead) -> ProjectionHead:
        """Return a new projection head, by default the paper's."""
        return kind(self.features, hidden=self.head_hidden, out_features=self.head_features)

    def pixel_units(self, owner: str) -> tuple[Tensor, Tensor]:
        """Return the mean and scale of every channel. Refuse samples that are not images."""
        if self.pixel_mean is None or self.pixel_scale is None:
            raise UserError(f"{owner} is for images: these samples have shape {self.shape}.")
        return self.pixel_mean, self.pixel_scale


class View(nn.Module):
    """An augmentation a ∈ 𝒜. Subclasses implement ``forward``; row i of the result is a view of row i."""

    for_images: ClassVar[bool] = False
    """Whether samples must be images, (C, H, W)."""

    adversarial: ClassVar[bool] = False
    """Whether the view learns against the encoder and therefore needs an adversarial objective."""

    by_row: bool = False
    """Whether the view depends on a sample's row number, such as a move to another row. It cannot follow a view."""

    @classmethod
    def build(cls, site: Site, *_: Any, **options: Any) -> View:
        """Return the view for the data. A view that depends on the data overrides this.

        Keyword-only arguments of ``build`` and of the constructor are the options that a configuration may set.
        """
        return cls(**options)

    def forward(self, batch: Batch) -> Batch:
        """Return one random view of every sample."""
        raise NotImplementedError

    @property
    def learned(self) -> PiNoise | None:
        """The learned noise in this view, if any."""
        return None

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return several independent views. A view with costly parameters computes them once."""
        return tuple(self(batch) for _ in range(times))


class Identity(View):
    """The sample itself.

    >>> x = torch.ones(2, 3)
    >>> Identity()(Batch(x, torch.arange(2))).x is x
    True
    """

    def forward(self, batch: Batch) -> Batch:
        """Return the batch as it is."""
        return batch


def per_sample(values: Tensor, x: Tensor) -> Tensor:
    """Reshape (m,) so that it broadcasts over samples of any rank.

    >>> per_sample(torch.zeros(4), torch.zeros(4, 2, 3)).shape
    torch.Size([4, 1, 1])
    """
    return values.reshape((-1,) + (1,) * (x.ndim - 1))


class PiNoiseView(View):
    """x + ε with ε ~ p_ψ(ε|x); the gradient reaches ψ.

    >>> view = PiNoiseView(PiNoise(3, hidden=4))
    >>> view(Batch(torch.zeros(2, 3), torch.arange(2))).noise.epsilon.shape
    torch.Size([2, 3])
    """

    def __init__(self, noise: PiNoise) -> None:
        super().__init__()
        self.noise = noise
        self.by_row = noise.moves

    @property
    def learned(self) -> PiNoise | None:
        """The noise itself."""
        return self.noise

    def forward(self, batch: Batch) -> Batch:
        """Return x + ε."""
        return self.draw(batch, 1)[0]

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return independent draws from one pass through the generator."""
        self.noise.keep_up(batch.x, batch.rows)
        noises = self.noise.draw(batch.x, times, features=batch.features, rows=batch.rows, generator=batch.generator)
        return tuple(batch.moved(batch.x + noise.epsilon)._replace(noise=noise, drew=None) for noise in noises)


def choose(views: Sequence[Batch], choice: Tensor) -> Batch:
    """Take, for every sample, the view that it drew: sample i gets ``views[choice[i]]``.

    Gradient flows only into the view that a sample drew, so ψ learns only from the samples that drew the noise.

    Args:
        views: the same batch after each augmentation; at most one augmentation adds learned noise.
        choice: the number of the augmentation drawn, shape (m,).

    >>> a, b = (Batch(torch.full((2, 1), v), torch.arange(2)) for v in (1.0, 2.0))
    >>> choose([a, b], torch.tensor([1, 0])).x.flatten()
    tensor([2., 1.])
    """
    x = views[0].x
    noise: Noise | None = None
    drew: Tensor | None = None
    for number, view in enumerate(views):
        here = choice == number
        if number:
            x = torch.where(per_sample(here, x), view.x, x)
        if view.noise is not None:
            drew = here if view.drew is None else here & view.drew
            noise = Noise(torch.where(per_sample(drew, x), view.noise.epsilon, 0), view.noise.scale)
    return views[0].moved(x)._replace(noise=noise, drew=drew)


class Pairing(nn.Module):
    """Make the views that a contrastive method compares.

    ===================  =============================================================================================
    ``identity-noise``   x against ν(x): Algorithm 1 with the original as the other view
    ``noise-noise``      two independent draws ν(x), ν'(x)
    ``sampled``          Algorithm 2: both views drawn per sample from 𝒜 ∪ {ν}, with identity as 𝒜 if it is empty
    ``compose``          ν(a(x)) against ν'(a'(x)) with a, a' drawn per sample from 𝒜
    ``identity``         x alone, for methods that make their own views
    ===================  =============================================================================================

    Args:
        name: one of the above.
        noise: ν, usually a ``PiNoiseView``; None for predefined augmentations alone.
        augmentations: 𝒜.
        local: makes further views, such as small crops. A method compares each of them with the two others.
        local_views: the number of further views.

    >>> pairing = Pairing("identity-noise", noise=PiNoiseView(PiNoise(3, hidden=4)))
    >>> first, second = pairing(Batch(torch.zeros(2, 3), torch.arange(2)))
    >>> bool((first.x == 0).all()), bool((second.x == 0).any())
    (True, False)
    """

    def __init__(
        self,
        name: PairingName,
        *,
        noise: View | None = None,
        augmentations: Sequence[View] = (),
        local: View | None = None,
        local_views: int = 0,
    ) -> None:
        super().__init__()
        if name not in PAIRINGS:
            raise unknown_choice("pairing", name, PAIRINGS)
        if name in ("identity-noise", "noise-noise"):
            if noise is None:
                raise UserError(f"pairing {name!r} needs a noise: give one, or choose 'sampled' or 'compose'.")
            if augmentations:
                raise UserError(
                    f"pairing {name!r} takes no other augmentations and was given {len(augmentations)}: "
                    "choose 'sampled' or 'compose' for them."
                )
        if name == "compose" and not augmentations:
            raise UserError("pairing 'compose' adds noise on top of augmentations: give at least one of them.")
        if name == "compose" and noise is not None and noise.by_row:
            raise UserError(
                "pairing 'compose' adds noise to augmented samples, but this noise depends on the row of a sample and "
                "would undo the augmentation: choose 'sampled', or 0 neighbours for noise along the data."
            )
        if name == "sampled" and noise is None and not augmentations:
            raise UserError("pairing 'sampled' has nothing to draw from: give a noise or augmentations.")
        if name == "identity" and (noise is not None or augmentations):
            raise UserError("pairing 'identity' is the sample alone: leave out the noise and the augmentations.")
        for view in (noise, *augmentations, local):
            if view is not None and not isinstance(view, View):
                raise UserError(
                    f"a pairing is made of views and was given {type(view).__name__}: "
                    "wrap a PiNoise in PiNoiseView, derive any other module from View."
                )
        self.name = name
        self.noise = noise
        self.augmentations = nn.ModuleList(augmentations)
        self.local = local
        self.local_views = local_views

    @property
    def keeps_original(self) -> bool:
        """Whether the sample itself is one of the views."""
        return self.name in ("identity-noise", "identity")

    def forward(self, batch: Batch) -> tuple[Batch, ...]:
        """Return the views: two of them, or one for ``identity``, and the local ones while training."""
        views = self._pair(batch)
        if self.local is None or not self.training:  # measurements compare the two views alone
            return views
        return *views, *self.local.draw(batch, self.local_views)

    def _pair(self, batch: Batch) -> tuple[Batch, ...]:
        if self.name == "identity":
            return (batch,)
        if self.name == "compose":
            first, second = self._drawn_per_sample(list(self.augmentations), batch)
            return (first, second) if self.noise is None else (*_draw(self.noise, first), *_draw(self.noise, second))
        if self.name == "sampled":
            augmentations = list(self.augmentations) or [Identity()]
            return self._drawn_per_sample([*augmentations, *([] if self.noise is None else [self.noise])], batch)
        assert self.noise is not None  # the constructor checks it
        if self.name == "noise-noise":
            return _draw(self.noise, batch, 2)
        return batch, *_draw(self.noise, batch)

    def _drawn_per_sample(self, views: list[nn.Module], batch: Batch) -> tuple[Batch, ...]:
        """Draw a, a' ~ 𝒜 uniformly for every sample and apply them."""
        # Every view sees the whole batch: some mix samples, and shapes that do not depend on draws need no host sync.
        draws = [_draw(view, batch, 2) for view in views if isinstance(view, View)]
        choices = torch.randint(len(views), (2, len(batch.x)), device=batch.x.device, generator=batch.generator)
        return tuple(choose([draw[side] for draw in draws], choices[side]) for side in range(2))


def _draw(view: View, batch: Batch, times: int = 1) -> tuple[Batch, ...]:
    """Return this number of views of a batch. Refuse a view that does not return a batch of the same shape."""
    drawn = view.draw(batch, times)
    for made in drawn:
        if not isinstance(made, Batch):
            raise UserError(
                f"the view {type(view).__name__} returned {type(made).__name__}: it must return a Batch, such as "
                "batch.moved(x)."
            )
        if made.x.shape != batch.x.shape:
            raise UserError(
                f"the view {type(view).__name__} returned samples of shape {tuple(made.x.shape)}: they must keep the "
                f"shape {tuple(batch.x.shape)} of the batch."
            )
    return drawn
