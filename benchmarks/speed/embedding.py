"""Embedding against the products of its forward pass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed
from pinoise.networks import MLPEncoder
from pinoise.networks.mlp import linear
from pinoise.training.build import build_embedding
from speed.timing import Task, in_turns, milliseconds, ratio

ROWS, FEATURES, BATCH = 16_384, 561, 4096
TURNS = 7


def measure() -> dict[str, Any]:
    """Return the speed of ``embed`` as a share of its products."""
    x = np.random.default_rng(0).standard_normal((ROWS, FEATURES), dtype=np.float32)
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    encoder = MLPEncoder((FEATURES,)).eval()
    sizes = [layer.shape for layer in encoder.parameters() if layer.ndim == 2]
    assert all(a[0] == b[1] for a, b in pairwise(sizes))
    operands = [(torch.randn(BATCH, inputs), torch.randn(outputs, inputs)) for outputs, inputs in sizes]

    def products() -> None:
        for _ in range(ROWS // BATCH):
            for batch, weight in operands:
                linear(batch, weight)

    tasks: dict[str, Task] = {"products": products}
    for name in ("learned", "joined"):
        embedding = build_embedding(encoder, name, standardizer, rows)
        tasks[name] = lambda embedding=embedding: embed(embedding, rows)  # type: ignore[misc]
    times = in_turns(tasks, turns=TURNS)
    ratios = {f"embedding, {name} / forward limit": ratio(times, "products", name) for name in ("learned", "joined")}
    return {"ratios": ratios, "rows": ROWS, "features": FEATURES, "milliseconds": milliseconds(times)}
