"""Shared set-up: one thread per test worker, and the real data where the machine has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or a skip that says what is missing."""
    folder = os.environ.get("PINOISE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real data sets: set PINOISE_DATA to their folder")
    return Path(folder)
