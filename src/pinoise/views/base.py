"""The contract of a view: a module from a batch to a batch, run on the device inside the training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from pinoise.errors import UserError, shown
from pinoise.modes import Randomness
from pinoise.noise import Noise, PiNoise
from pinoise.views.site import Site


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


class View(nn.Module):
    """An augmentation a ∈ 𝒜. Subclasses implement ``forward``; row i of the result is a view of row i."""

    for_images: ClassVar[bool] = False
    """Whether samples must be images, (C, H, W)."""

    adversarial: ClassVar[bool] = False
    """Whether the view learns against the encoder and therefore needs an adversarial objective."""

    @classmethod
    def build(cls, site: Site, *_: Any, **options: Any) -> View | tuple[View, ...]:
        """Return the view, or several views, for the data. A view that depends on the data overrides this.

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

    @property
    def by_row(self) -> bool:
        """Whether the view depends on a sample's row number, such as a move to another row. It cannot follow a view."""
        return False

    def draw(self, batch: Batch, times: int) -> tuple[Batch, ...]:
        """Return several independent views. A view with costly parameters computes them once."""
        return tuple(self(batch) for _ in range(times))


class Identity(View):
    """The sample itself.

    >>> import torch
    >>> x = torch.ones(2, 3)
    >>> Identity()(Batch(x, torch.arange(2))).x is x
    True
    """

    def forward(self, batch: Batch) -> Batch:
        """Return the batch as it is."""
        return batch


class FunctionView(View):
    """A user's own function from a batch of samples to a batch of the same shape, as a view.

    >>> FunctionView(lambda x: 2 * x)(Batch(torch.ones(2, 1), torch.arange(2))).x.flatten()
    tensor([2., 2.])
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, batch: Batch) -> Batch:
        """Return the function's output for the samples."""
        moved = self.function(batch.x)
        if not isinstance(moved, Tensor) or moved.shape != batch.x.shape:
            raise UserError(f"the view returned {shown(moved)}: it must return a tensor of {shown(batch.x)}.")
        return batch.moved(moved)


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.factor * gradients[0], None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return x with its gradient multiplied by ``factor``: 0 stops the gradient, −1 reverses it.

    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.grad(3 * scale_gradient(x, -1.0).sum(), x)
    (tensor([-3.]),)
    """
    if factor == 0:
        return x.detach()
    scaled: Tensor = _ScaleGradient.apply(x, factor)  # type: ignore[no-untyped-call]
    return scaled


def per_sample(values: Tensor, x: Tensor) -> Tensor:
    """Reshape (m,) so that it broadcasts over samples of any rank.

    >>> import torch
    >>> per_sample(torch.zeros(4), torch.zeros(4, 2, 3)).shape
    torch.Size([4, 1, 1])
    """
    return values.reshape((-1,) + (1,) * (x.ndim - 1))
