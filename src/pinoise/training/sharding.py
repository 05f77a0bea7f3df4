"""Weights and moments that are divided among processes (FSDP), and whole again wherever somebody looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel

dist: Any = torch.distributed  # which does not export its functions to the type checker


def divided(wrapped: nn.Module) -> FullyShardedDataParallel | None:
    """Return what divides the weights of a module that Fabric has set up, or None if every process has them all."""
    forward = getattr(wrapped, "_forward_module", wrapped)
    return forward if isinstance(forward, FullyShardedDataParallel) else None


@contextmanager
def whole(wrapped: nn.Module, *, write: bool = False) -> Iterator[None]:
    """Make the weights whole in every process inside the block, which all must enter.

    Args:
        wrapped: a module that Fabric has set up. Nothing happens unless its weights are divided.
        write: whether changes of the weights are kept.
    """
    sharded = divided(wrapped)
    if sharded is None:
        yield
        return
    with FullyShardedDataParallel.summon_full_params(sharded, writeback=write):
        yield


def weights_of(wrapped: nn.Module) -> dict[str, Tensor]:
    """Return all weights and buffers by their names in the model. Every process must call it."""
    with whole(wrapped):
        state = wrapped.state_dict()
        return state if divided(wrapped) is None else {name: tensor.clone() for name, tensor in state.items()}


MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam


def moments_of(wrapped: nn.Module, optimizer: Any) -> dict[str, Any]:
    """Return the state of an optimiser, whole, by the numbers of the weights. Every process must call it."""
    state: dict[str, Any] = optimizer.state_dict()
    if divided(wrapped) is None:
        return state
    weights = _weights(optimizer)
    steps = torch.tensor([float(optimizer.state.get(weight, {}).get("step", 0)) for weight in weights])
    steps = steps.to(weights[0].device)
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)  # a process without a share of a weight has no state of it
    found: dict[int, dict[str, Tensor]] = {n: {"step": step} for n, step in enumerate(steps.cpu()) if step > 0}
    for name in MOMENTS:
        with _in_place_of_weights(weights):
            for weight in weights:
                weight.copy_(optimizer.state[weight][name]) if optimizer.state.get(weight) else weight.zero_()
            with whole(wrapped):
                for number, moments in found.items():
                    moments[name] = weights[number].detach().clone()
    return {"state": found, "param_groups": state["param_groups"]}


def load_moments(wrapped: nn.Module, optimizer: Any, moments: dict[int, Any]) -> None:
    """Give an optimiser stored moments, by the numbers of its weights; its rates stay. Every process must call it."""
    state, weights = {number: dict(stored) for number, stored in moments.items()}, _weights(optimizer)
    for name in MOMENTS if divided(wrapped) is not None else ():
        with _in_place_of_weights(weights):
            with whole(wrapped, write=True):
                for number, stored in moments.items():
                    weights[number].copy_(stored[name])
            for number in moments:
                state[number][name] = weights[number].detach().clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _weights(optimizer: Any) -> list[Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


@contextmanager
def _in_place_of_weights(weights: list[Tensor]) -> Iterator[None]:
    """Lend the weights to moments, which are divided as they are. torch's own way mixes moments up on a CPU (2.13)."""
    own = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        yield
        for weight, values in zip(weights, own, strict=True):
            weight.copy_(values)


@torch.no_grad()
def dissolve(wrapped: nn.Module, model: nn.Module) -> None:
    """Leave a model with whole weights of its own, as it was before Fabric divided them. Every process must call it."""
    if divided(wrapped) is None:
        return
    with whole(wrapped):
        weights = {name: (weight.detach().clone(), weight.requires_grad) for name, weight in model.named_parameters()}
    for name, (tensor, learns) in weights.items():
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, nn.Parameter(tensor, requires_grad=learns))
