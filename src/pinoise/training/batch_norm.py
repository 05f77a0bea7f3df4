"""Batch normalisation over the joint batch of all processes. torch's own exists for GPUs alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pinoise.methods.gathering import gather, world_size

_REPLACED = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def pooled_moments(means: Tensor, variances: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of several groups of equal size together, from those of each group.

    Args:
        means: shape (groups, channels).
        variances: biased, shape (groups, channels).

    >>> pooled_moments(torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [3.0]]))
    (tensor([1.]), tensor([3.]))
    """
    mean = means.mean(dim=0)
    return mean, (variances + (means - mean).square()).mean(dim=0)


class JointBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Normalises by the mean and variance over the samples of all processes, which must have equally many each.

    In a process alone and in evaluation it is torch's batch normalisation. Weights, buffers and their names are those
    of the layer that it replaces.

    >>> layer = nn.BatchNorm1d(3)
    >>> JointBatchNorm.like(layer).weight is layer.weight
    True
    """

    @classmethod
    def like(cls, norm: nn.modules.batchnorm._BatchNorm) -> JointBatchNorm:
        """Return a layer with the weights, buffers, settings and mode of another."""
        joint = cls(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        joint._parameters, joint._buffers = norm._parameters, norm._buffers
        return joint.train(norm.training)

    def _check_input_dim(self, input: Tensor) -> None:
        """Accept samples of any rank."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised batch (m, channels, …)."""
        if not self.training or world_size() == 1:
            return super().forward(input)
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        over = [0, *range(2, x.ndim)]
        variance, mean = torch.var_mean(x, dim=over, correction=0)
        moments = gather(torch.stack([mean, variance])[None])  # (processes, 2, channels): one exchange for both
        mean, variance = pooled_moments(*moments.unbind(dim=1))
        self._keep(mean.detach(), variance.detach(), count=world_size() * x.numel() // self.num_features)
        scale = torch.rsqrt(variance + self.eps)
        if self.affine:
            scale = scale * self.weight
        shift = -mean * scale + (self.bias if self.affine else 0)
        channels = (1, -1) + (1,) * (x.ndim - 2)
        return (x * scale.view(channels) + shift.view(channels)).to(input.dtype)

    @torch.no_grad()
    def _keep(self, mean: Tensor, variance: Tensor, *, count: int) -> None:
        """Move the running statistics as torch does, with the unbiased variance."""
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        share = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            share = 1 / float(self.num_batches_tracked) if share is None else share
        share = 0.0 if share is None else share
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * count / max(count - 1, 1)).to(self.running_var.dtype), share)


def normalise_jointly(model: nn.Module) -> None:
    """Replace batch normalisation in a model by one over all processes. Layers of a user's own class stay.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    >>> normalise_jointly(model)
    >>> type(model[1]).__name__
    'JointBatchNorm'
    """
    made: dict[nn.Module, JointBatchNorm] = {}  # a layer in two places stays one layer
    for part in list(model.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.modules.batchnorm._BatchNorm) and type(child) in _REPLACED:
                if child not in made:
                    made[child] = JointBatchNorm.like(child)
                setattr(part, name, made[child])
