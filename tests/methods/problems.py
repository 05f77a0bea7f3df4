"""What the tests of several methods share: views as batches, and the types of the slow equations of ``conftest``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from pinoise.views import Batch

Pair = tuple[Tensor, Tensor]
SlowCosine = Callable[[np.ndarray, np.ndarray], float]
SlowLoss = Callable[[np.ndarray, np.ndarray, float], list[float]]


def batches(*views: Tensor, rows: Tensor | None = None) -> list[Batch]:
    """Views as a method takes them, by default of the first rows."""
    return [Batch(x, torch.arange(len(x)) if rows is None else rows) for x in views]
