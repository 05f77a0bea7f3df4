"""What a user's program does to a support: save, copy, cast, resume. Its neighbours must survive it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pinoise.noise import Support

ROWS = 30
METRIC = torch.tensor([0.1, 1.0, 5.0])

Transfer = Callable[[Support], Support]


def pickled(support: Support) -> Support:
    loaded: Support = pickle.loads(pickle.dumps(support))
    return loaded


@pytest.fixture
def bank() -> Tensor:
    return torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=[1, 2], ids=["table", "search"])
def support(request: pytest.FixtureRequest, bank: Tensor) -> Support:
    every: int = request.param
    made = Support(bank.clone(), numbers=every * torch.arange(ROWS), rows=every * ROWS, k=4)
    made.refresh(METRIC)
    return made


def found(support: Support, x: Tensor) -> list[set[int]]:
    """Every row's neighbours; the search may list them in another order."""
    neighbours = support.neighbours(x, support.numbers)
    pairs = zip(neighbours.positions, neighbours.eligible, strict=True)
    return [set(positions[eligible].tolist()) for positions, eligible in pairs]


def test_a_resumed_run_has_the_same_neighbours(support: Support, bank: Tensor, tmp_path: Path) -> None:
    before = found(support, bank)
    torch.save(support.state_dict(), tmp_path / "support.pt")
    other = Support(torch.zeros(ROWS, 3), numbers=torch.arange(ROWS), rows=support.rows, k=4)
    assert found(other, bank) != before  # and knows by now who is next to whom among zeros
    other.load_state_dict(torch.load(tmp_path / "support.pt", weights_only=True))
    assert found(other, bank) == before
    assert torch.equal(other.metric, METRIC)
    other.refresh(METRIC * 1.001)  # the last metric counts, not the first
    assert torch.equal(other.metric, METRIC)


@pytest.mark.parametrize("transfer", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("used", [False, True])
def test_a_copy_is_equal_and_independent(support: Support, bank: Tensor, transfer: Transfer, used: bool) -> None:
    if used:
        found(support, bank)
    copied = transfer(support)
    before = found(support, bank)
    assert found(copied, bank) == before
    torch.manual_seed(3)
    drawn = support.draw(bank, rows=support.numbers)
    torch.manual_seed(3)
    assert torch.equal(copied.draw(bank, rows=copied.numbers), drawn)
    copied.refresh(torch.ones(3))
    assert found(copied, bank) != before
    assert found(support, bank) == before
    assert torch.equal(support.metric, METRIC)


def test_to_another_type_keeps_the_neighbours(support: Support, bank: Tensor) -> None:
    before = found(support, bank)
    moved = support.to(torch.float64)
    assert found(moved, bank.double()) == before
    drawn = moved.draw(bank.double(), rows=moved.numbers)
    assert drawn.dtype == moved.metric.dtype == torch.float64
    assert moved.numbers.dtype == torch.int64
