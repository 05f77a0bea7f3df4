"""Shared set-up: one thread per test worker, the real data where the machine has it, and a tiny SAM."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from pinoise.views import SamSize
from pinoise.views.segment import build_sam

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


@pytest.fixture
def tiny_sam() -> SamSize:
    """The sizes of a Segment-Anything model that a test can run."""
    return SamSize(
        width=16,
        depth=2,
        heads=2,
        global_blocks=(1,),
        image_size=32,
        patch=8,
        window=2,
        channels=16,
        decoder_heads=2,
        decoder_hidden=32,
    )


@pytest.fixture
def sam_weights(tiny_sam: SamSize, tmp_path: Path) -> Path:
    """A file of weights for it, with which masks differ between prompts and images."""
    path = tmp_path / "sam.pth"
    torch.manual_seed(0)
    tensors = build_sam(tiny_sam).state_dict()
    # Positions start at zero and prompts hardly matter, so that both are drawn wider.
    torch.save({name: tensor + 0.3 * torch.randn_like(tensor) for name, tensor in tensors.items()}, path)
    return path
