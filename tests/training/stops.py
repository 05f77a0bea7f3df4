"""A training that is stopped at a step, and what must be the same once it went on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.data.rows import Rows
from pinoise.training.callbacks import Interrupted, Quiet, Record
from pinoise.training.config import TrainingSettings
from pinoise.training.loop import Machine, train
from pinoise.training.objectives import ContrastiveModel


def cpu() -> Machine:
    """This process, in single precision."""
    return Machine(torch.device("cpu"))


def stop_at(
    step: int,
    model: ContrastiveModel,
    rows: Rows,
    settings: TrainingSettings,
    folder: Path,
    *,
    machine: Machine | None = None,
) -> Path:
    """Train up to a step. Return the checkpoint from which training goes on."""
    steps = count(1)
    with pytest.raises(Interrupted, match=f"step {step}"):
        train(
            model,
            rows,
            settings,
            machine=machine or cpu(),
            reporter=Quiet(),
            checkpoints=folder,
            should_stop=lambda: next(steps) == step,
        )
    return folder / "last.ckpt"


def assert_same_tensors(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> None:
    """To the bit."""
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


def assert_same_history(first: list[Record], second: list[Record]) -> None:
    """In all but the seconds; numbers that were not measured are nan in both."""
    np.testing.assert_equal([record[:-1] for record in first], [record[:-1] for record in second])
