"""A training step against its own matrix products, against the rate of a large product, and against random noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from pinoise.modes import flushed_denormals
from pinoise.networks.mlp import linear
from pinoise.paper.rehearsal import Rehearsal, training_step
from pinoise.training.config import Settings, parse_settings
from speed.timing import Task, in_turns, milliseconds, ratio

RANDOM = "random noise"
VARIANTS: dict[str, dict[str, Any]] = {
    RANDOM: {"objective": "fixed"},
    "the default": {},
    "default objective, shared": {"noise": {"generator": "shared"}},
    "default objective, mlp": {"noise": {"generator": "mlp"}},
    "Algorithm 1, global": {"objective": "paper", "noise": {"generator": "global"}},
    "Algorithm 1, shared": {"objective": "paper", "noise": {"generator": "shared"}},
    "Algorithm 1, mlp": {"objective": "paper"},
    "Algorithm 1, mlp, μ learned": {"objective": "paper", "noise": {"mean": "learned"}},
}
"""The default objective compares two noisy views. Algorithm 1 compares a noisy view with the sample itself."""

FEATURES = (136, 561, 2000)
BATCH = 256
ROWS = 4096
TURNS, STEPS = 9, 2
WIDTHS = (1024, 1024, 256, 256, 128)  # of the layers of the default encoder and head
LARGE = 1024  # the side of the matrices whose product is the limit


def settings_of(variant: str) -> Settings:
    """Return the settings of a variant."""
    return parse_settings({**VARIANTS[variant], "training": {"batch_size": BATCH, "device": "cpu"}})


def count_operations(variant: str, features: int) -> int:
    """Return the operations of a step's products, forward and backward.

    They are counted on tensors without values, once the neighbours are known: to find them is no part of a step.
    """
    _, products, _ = Rehearsal(settings_of(variant), (features,), ROWS).count_step()
    return 2 * products


def make_step(variant: str, features: int) -> Task:
    """Return a function that does one real training step, gather and optimiser included."""
    settings = settings_of(variant)
    rehearsal = Rehearsal(settings, (features,), ROWS)
    return training_step(settings, rehearsal.model, rehearsal.rows, batch_size=BATCH)


def make_products(features: int) -> tuple[Task, int]:
    """Return a function that does the matrix products of a random-noise step and nothing else, and their operations."""
    m = 2 * BATCH
    operands = []  # x and W of x Wᵀ, in the layouts that a step has them in
    for inputs, outputs in pairwise((features, *WIDTHS)):
        x, weight, gradient = torch.randn(m, inputs), torch.randn(outputs, inputs), torch.randn(m, outputs)
        operands += [(x, weight), (gradient.T, x.T)]
        if inputs != features:  # no gradient with respect to the samples
            operands.append((gradient, weight.T))
    z, similarity = torch.randn(m, WIDTHS[-1]), torch.randn(m, m)
    operands += [(z, z), (similarity, z.T), (similarity.T, z.T)]

    def products() -> None:
        for x, weight in operands:
            linear(x, weight)

    return products, sum(2 * x.shape[0] * x.shape[1] * len(weight) for x, weight in operands)


def make_large_product() -> tuple[Callable[[], object], int]:
    """Return a function that multiplies two large matrices, and its operations."""
    a, b = torch.randn(LARGE, LARGE), torch.randn(LARGE, LARGE)
    return lambda: linear(a, b), 2 * LARGE**3


def measure() -> dict[str, Any]:
    """Return ratios, and the time and the operations of every variant."""
    ratios, rows = {}, []
    for features in FEATURES:
        products, product_count = make_products(features)
        large, large_count = make_large_product()
        with flushed_denormals():  # as in the training loop
            steps = {name: make_step(name, features) for name in VARIANTS}
            times = in_turns({"products": products, "large": large, **steps}, turns=TURNS, repeats=STEPS)
        ratios[f"step / its products, d = {features}"] = round(1 / ratio(times, RANDOM, "products"), 3)
        limit = large_count * ratio(times, RANDOM, "large")
        ratios[f"step / GEMM limit, d = {features}"] = round(product_count / limit, 3)
        medians = milliseconds(times)
        for name in VARIANTS:
            ratios[f"{name} / {RANDOM}, d = {features}"] = ratio(times, name, RANDOM)
            rows.append(
                {
                    "features": features,
                    "batch": BATCH,
                    "variant": name,
                    "milliseconds": medians[name],
                    "operations": count_operations(name, features),
                }
            )
    return {"ratios": ratios, "steps": rows}
