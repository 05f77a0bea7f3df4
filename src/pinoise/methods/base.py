"""The contract of a contrastive method: views in, one loss per sample out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.networks.mlp import width_of
from pinoise.views import Batch, Site


class Method(nn.Module):
    """ℓ(x; θ): an encoder, the other networks that the method trains, and the loss of every sample.

    Args:
        encoder: f_θ, a module with the integer attribute ``out_features``.
        head: maps its features to what the method compares; None compares the features.
    """

    least_loss: float = 0.0
    """The lowest possible loss, for views that match perfectly."""

    makes_views: ClassVar[bool] = False
    """Whether the method makes its own partner for x, so that x alone is enough."""

    takes_local_views: ClassVar[bool] = False
    """Whether the method takes further, smaller views besides the two."""

    def __init__(self, encoder: nn.Module, head: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Identity() if head is None else head

    @classmethod
    def build(cls, site: Site, **options: Any) -> Self:
        """Return the method for an encoder and its data, by default with a new projection head.

        Keyword-only arguments of ``build`` and of the constructor are the options that a configuration may set.
        """
        return cls(site.encoder, site.projection_head(), **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        raise NotImplementedError

    def encode(self, views: Sequence[Batch]) -> Tensor:
        """Return f_θ of all views, one view after the other, shape (views · m, out_features).

        Views of one shape share one pass; views with known features need none. Batch normalisation therefore has one
        mean and variance for all views of a shape. A shift between the views is not normalised away. Through these
        statistics a view, and the noise in it, has a small effect on the others.
        """
        features: list[Tensor] = []
        for known, alike in groupby(views, key=lambda view: view.features is not None):
            if known:
                features += [view.features for view in alike if view.features is not None]
            else:
                features.append(in_passes(self.encoder, [view.x for view in alike]))
        return joined(features)

    def project(self, views: Sequence[Batch]) -> Tensor:
        """Return the head's output for all views, one view after the other, shape (views · m, dim)."""
        projections: Tensor = self.head(self.encode(views))
        return projections

    def embed(self, x: Tensor) -> Tensor:
        """Return the representation of samples without augmentation, shape (m, out_features)."""
        representation: Tensor = self.encoder(x)
        return representation

    def guessing_loss(self, batch_size: int) -> float | None:
        """The loss of an encoder that cannot tell samples apart, or None if it is not known.

        Args:
            batch_size: the rows in a step, of all processes together.
        """
        return None

    def after_step(self, step: int, steps: int) -> None:
        """Update the state that no gradient trains, such as a momentum encoder. Called after the optimiser's step.

        Args:
            step: the number of steps before this one.
            steps: the number of steps in the whole training.
        """


def in_passes(network: Callable[[Tensor], Tensor], samples: Sequence[Tensor]) -> Tensor:
    """Return a network's output for several batches, one after the other. Batches of one shape share one pass.

    >>> crops = [torch.ones(2, 1, 8, 8), torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 4, 4)]
    >>> in_passes(lambda x: x.mean((1, 2, 3)), crops)
    tensor([1., 1., 0., 0., 1., 1.])
    """
    return joined([network(joined(list(alike))) for _, alike in groupby(samples, key=lambda x: x.shape[1:])])


def joined(parts: list[Tensor]) -> Tensor:
    """Concatenate along the batch. One part alone is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@contextmanager
def full_precision(*inputs: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Convert the inputs of a loss to at least 32 bits, and switch autocast off: 1/τ magnifies rounding errors.

    >>> half = torch.tensor([3.0], dtype=torch.float16)
    >>> with full_precision(half, half.double()) as (single, double):
    ...     single.dtype, double.dtype
    (torch.float32, torch.float64)
    """
    with torch.autocast(inputs[0].device.type, enabled=False):
        yield tuple(x.to(torch.promote_types(x.dtype, torch.float32)) for x in inputs)


def two_views(views: Sequence[Batch], *, method: str) -> tuple[Batch, Batch]:
    """Return the two views. Refuse any other number of views."""
    if len(views) != 2:
        raise UserError(f"method {method!r} compares two views and was given {len(views)}: choose another pairing.")
    return views[0], views[1]


class PredictiveMethod(Method):
    """A method in which every view's projection predicts what a network without gradient makes of the other view.

    Args:
        encoder: f_θ.
        head: the projection head, with the integer attribute ``out_features``.
        predictor: a network from projections to projections.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, predictor: nn.Module) -> None:
        super().__init__(encoder, head)
        self.predictor = predictor
        given, wanted = width_of("predictor", predictor), width_of("head", head)
        if given != wanted:
            raise UserError(f"the predictor gives {given} features and the head {wanted}: both must give as many.")
