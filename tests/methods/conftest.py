"""Small networks and two views, on which the methods are measured."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from pinoise.networks import MLPEncoder, ProjectionHead


@pytest.fixture
def encoder() -> nn.Module:
    torch.manual_seed(0)
    return MLPEncoder((4,), hidden=16, out_features=5).double()


@pytest.fixture
def head() -> nn.Module:
    torch.manual_seed(1)
    return ProjectionHead(5, hidden=16, out_features=3).double()


@pytest.fixture
def predictor() -> nn.Module:
    torch.manual_seed(2)
    return ProjectionHead(3, hidden=16, out_features=3).double()


@pytest.fixture
def pair() -> tuple[Tensor, Tensor]:
    """Two views of six samples of four features."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    return x, x + 0.3 * torch.randn(6, 4, generator=generator, dtype=torch.float64)
