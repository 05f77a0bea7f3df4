"""How the views of a sample are paired: Algorithms 1 and 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pinoise.choices import PAIRINGS, PairingName
from pinoise.errors import UserError, unknown_choice
from pinoise.noise import Noise, PiNoise
from pinoise.views.base import Batch, Identity, View, per_sample


class PiNoiseView(View):
    """x + ε with ε ~ p_ψ(ε|x); the gradient reaches ψ.

    >>> view = PiNoiseView(PiNoise(3, hidden=4))
    >>> view(Batch(torch.zeros(2, 3), torch.arange(2))).noise.epsilon.shape
    torch.Size([2, 3])
    """

    def __init__(self, noise: PiNoise) -> None:
        super().__init__()
        self.noise = noise

    @property
    def learned(self) -> PiNoise | None:
        """The noise itself."""
        return self.noise

    @property
    def by_row(self) -> bool:
        """Noise with neighbours moves a sample to another row."""
        return self.noise.moves

    def forward(self, batch: Batch) -> Batch:
        """Return x + ε."""
        return self.draw(batch, 1)[0]

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return independent draws from one pass through the generator."""
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
        if (local is None) != (local_views == 0) or local_views < 0:
            given = "None" if local is None else type(local).__name__
            raise UserError(f"local_views is {local_views} and local is {given}: give both or neither.")
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
