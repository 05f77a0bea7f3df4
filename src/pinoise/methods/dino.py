"""DINO (Caron et al., 2021, arXiv:2104.14294): a student matches its teacher's distribution over prototypes.

Gradient reaches π-noise through the student branch alone: the teacher runs without gradient. The student sees every
view, so noise in any of them learns. ``Pairing`` adds noise to the two global views only, not to local crops.

There are three differences from the paper. The teacher's temperature is constant, without a warm-up. The last layer of
the head learns from the first step on; the paper freezes it for an epoch. ``embed`` uses the student's encoder; the
paper's results use the teacher's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from pinoise.choices import Positive, Share, Size, within
from pinoise.errors import UserError
from pinoise.methods.base import Method, full_precision, in_passes
from pinoise.methods.gathering import gather
from pinoise.methods.momentum import Momentum, cosine_momentum
from pinoise.networks import PROTOTYPES, PrototypeHead
from pinoise.networks.mlp import width_of
from pinoise.views import Batch, Site

_GLOBAL_VIEWS = 2

STUDENT_TEMPERATURE = 0.1
TEACHER_TEMPERATURE = 0.04


def dino_loss(
    student: Tensor,
    teacher: Tensor,
    centre: Tensor,
    *,
    temperature: float = STUDENT_TEMPERATURE,
    teacher_temperature: float = TEACHER_TEMPERATURE,
) -> Tensor:
    """Mean of −Σ P_t(g) log P_s(v) over the teacher's views g and the student's views v ≠ g.

    P_s = softmax(s / τ_s) and P_t = softmax((t − c) / τ_t). The centre keeps one prototype from winning every time. The
    lower temperature keeps P_t from becoming uniform.

    Args:
        student: s, shape (views, m, prototypes).
        teacher: t, for the first (global) views, shape (global views, m, prototypes).
        centre: c, shape (prototypes,).
        temperature: τ_s.
        teacher_temperature: τ_t.

    Returns:
        The loss of every sample, shape (m,).

    >>> student, teacher = torch.zeros(3, 1, 4), torch.randn(2, 1, 4)
    >>> dino_loss(student, teacher, torch.zeros(4))  # log 4, whatever the teacher says
    tensor([1.3863])
    """
    with full_precision(student, teacher, centre) as (student, teacher, centre):
        log_student = (student / temperature).log_softmax(dim=-1)
        wanted = ((teacher - centre) / teacher_temperature).softmax(dim=-1)
        cross_entropy = -torch.einsum("gmk,vmk->gvm", wanted, log_student)
        pairs = 1 - torch.eye(len(teacher), len(student), dtype=student.dtype, device=student.device)
        return (pairs[:, :, None] * cross_entropy).sum(dim=(0, 1)) / (len(teacher) * (len(student) - 1))


class DINO(Method):
    """Cross entropy between teacher and student on different views, averaged over the pairs of views.

    The first two views are global, and the teacher sees them as well. Any others are local crops, which may have
    another size. A forward pass in train mode stores the teacher's mean output. ``after_step`` moves the centre towards
    its mean over all processes.

    Args:
        encoder: f_θ, the student.
        head: a network from features to scores of prototypes, with the integer attribute ``out_features``.
        temperature: τ_s, the student's.
        teacher_temperature: τ_t.
        momentum: the share of the teacher that is kept at the first step; it rises to 1 along a cosine. The published
            0.996 is for a hundred times the steps that small data gives.
        centre_momentum: the share of the centre that is kept at every step.
    """

    takes_local_views = True
    centre: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        temperature: Positive = STUDENT_TEMPERATURE,
        teacher_temperature: Positive = TEACHER_TEMPERATURE,
        momentum: Share = 0.99,
        centre_momentum: Share = 0.9,
    ) -> None:
        super().__init__(encoder, head)
        self.temperature = within("temperature", temperature, Positive)
        self.teacher_temperature = within("teacher_temperature", teacher_temperature, Positive)
        self.momentum = within("momentum", momentum, Share)
        self.centre_momentum = within("centre_momentum", centre_momentum, Share)
        self.teacher = Momentum(encoder, head)
        self.register_buffer("centre", torch.zeros(width_of("head", head)))
        self._teacher_mean: Tensor | None = None

    @classmethod
    def build(cls, site: Site, *, prototypes: Size = PROTOTYPES, **options: Any) -> Self:
        """Return the method with a head that scores this number of prototypes."""
        head = PrototypeHead(
            site.features, hidden=site.head_hidden, bottleneck=site.head_features, prototypes=prototypes
        )
        return cls(site.encoder, head, **options)

    def forward(self, views: Sequence[Batch]) -> Tensor:
        """Return the loss of every sample, shape (m,)."""
        if len(views) < _GLOBAL_VIEWS:
            raise UserError(
                f"method 'dino' compares two views or more and was given {len(views)}: choose another pairing."
            )
        student = self.project(views).unflatten(0, (len(views), -1))  # (views, m, prototypes)
        teacher = in_passes(self.teacher, [view.x for view in views[:_GLOBAL_VIEWS]]).unflatten(0, (_GLOBAL_VIEWS, -1))
        if self.training:
            self._teacher_mean = teacher.mean(dim=(0, 1), dtype=self.centre.dtype)
        temperatures = {"temperature": self.temperature, "teacher_temperature": self.teacher_temperature}
        return dino_loss(student, teacher, self.centre, **temperatures)

    def guessing_loss(self, batch_size: int) -> float | None:
        """The log of the number of prototypes: the student finds all of them equally likely."""
        return math.log(len(self.centre))

    @torch.no_grad()
    def after_step(self, step: int, steps: int) -> None:
        """Move the teacher towards the student, ever more slowly, and the centre towards the teacher's mean output."""
        self.teacher.follow(self.encoder, self.head, momentum=cosine_momentum(step, steps, self.momentum))
        if self._teacher_mean is None:
            return
        mean = gather(self._teacher_mean[None]).mean(dim=0)
        self.centre.lerp_(mean, 1 - self.centre_momentum)
        self._teacher_mean = None
