"""Sparse rows: a step that makes them dense, and what a sparse product of the first layer would save in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.modes import flushed_denormals
from pinoise.networks.mlp import linear
from pinoise.noise.support import TRANSPLANTED
from pinoise.paper.rehearsal import training_step
from pinoise.training.build import seeded_model
from pinoise.training.config import parse_settings
from speed.skipping import samples
from speed.timing import Task, in_turns, milliseconds, ratio

BATCH, WIDTH = 256, 1024
TURNS = 7


class SparseProduct:
    """x Wᵀ and the gradient of W for sparse rows x, without their zeros."""

    def __init__(self, x: sp.csr_array, weight: Tensor) -> None:
        self._x, self._transposed = x, sp.csr_array(x.T)
        self._columns, self._starts = (torch.from_numpy(a.astype(np.int64)) for a in (x.indices, x.indptr[:-1]))
        self._values = torch.from_numpy(x.data)
        self._weight = weight.T.contiguous()

    def forward(self) -> Tensor:
        """Return x Wᵀ as weighted sums of columns of W."""
        return F.embedding_bag(self._columns, self._weight, self._starts, mode="sum", per_sample_weights=self._values)

    def both(self, gradient: np.ndarray) -> None:
        """Do the forward product and that for the gradient of W."""
        self.forward()
        self._transposed @ gradient


def products(x: sp.csr_array) -> dict[str, Task]:
    """Return the products of a first layer that do not depend on noise, dense and sparse."""
    dense, weight = torch.from_numpy(x.toarray()), torch.randn(WIDTH, x.shape[1])
    gradient = torch.randn(len(dense), WIDTH)
    assert torch.allclose(SparseProduct(x, weight).forward(), linear(dense, weight), atol=1e-3)

    def both() -> None:
        linear(dense, weight)
        linear(gradient.T, dense.T)

    product = SparseProduct(x, weight)
    return {"dense": both, "sparse": lambda: product.both(gradient.numpy())}


def measure() -> dict[str, Any]:
    """Return the cost of sparse rows today, and what sparse products would save for each kind of view."""
    x = sp.csr_array(samples("reuters46").astype(np.float32))
    draw = np.random.default_rng(0)
    alone = sp.csr_array(x[draw.integers(0, x.shape[0], 2 * BATCH)])
    parts = [x[draw.integers(0, x.shape[0], 2 * BATCH)] for _ in range(2 * TRANSPLANTED)]
    moved = sp.csr_array(sum(parts[1:], alone + parts[0])).astype(np.float32)  # x and 4 pairs of rows
    settings = parse_settings({"training": {"batch_size": BATCH, "device": "cpu"}})
    standardizer = Standardizer.fit(x)
    tasks: dict[str, Task] = {}
    for name, source in (("sparse rows", x), ("dense rows", x.toarray())):
        rows = make_rows(source, standardizer)
        tasks[name] = training_step(settings, seeded_model(settings, standardizer, rows), rows, batch_size=BATCH)
    for kind, views in (("samples", alone), ("transplanted", moved)):
        tasks |= {f"{kind}, {name}": task for name, task in products(views).items()}
    with flushed_denormals():
        times = in_turns(tasks, turns=TURNS)
    medians = milliseconds(times)
    # Half of the default's views have a dense draw. The other half is x and four differences of rows.
    saved = (medians["transplanted, dense"] - medians["transplanted, sparse"]) / 2
    ratios = {
        "step of sparse Reuters / of dense, speed": ratio(times, "dense rows", "sparse rows"),
        "first layer without noise, dense / sparse": ratio(times, "samples, dense", "samples, sparse"),
        "first layer, transplanted differences, dense / sparse": ratio(
            times, "transplanted, dense", "transplanted, sparse"
        ),
        "default step with sparse products, calculated speed": round(
            medians["dense rows"] / (medians["dense rows"] - max(saved, 0)), 3
        ),
    }
    density = {"samples": alone.nnz / np.prod(alone.shape), "transplanted": moved.nnz / np.prod(moved.shape)}
    return {"ratios": ratios, "milliseconds": medians, "density": {k: round(float(v), 4) for k, v in density.items()}}
