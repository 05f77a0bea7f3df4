from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, SlowCosine, batches
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from pinoise.errors import UserError
from pinoise.methods import MemoryBank
from pinoise.networks import MLPEncoder, ProjectionHead


class Looks(TorchDispatchMode):
    """Counts how often a number is read from a tensor."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def slow_bank(
    anchor: np.ndarray, positive: np.ndarray, negatives: list[np.ndarray], temperature: float, cosine: SlowCosine
) -> float:
    near = math.exp(cosine(anchor, positive) / temperature)
    return -math.log(near / (near + sum(math.exp(cosine(anchor, entry) / temperature) for entry in negatives)))


@pytest.mark.parametrize("negatives", [5, 8, 9, 4096])
def test_the_method_averages_over_both_views_their_rows_entry_against_those_of_other_rows(
    negatives: int,
    encoder: nn.Module,
    head: nn.Module,
    pair: Pair,
    slow_cosine: SlowCosine,
    slow_network: Callable[[nn.Module], Any],
) -> None:
    rows = torch.tensor([7, 2, 9, 0, 4, 5])
    method = MemoryBank(encoder, head, rows=10, negatives=negatives, temperature=0.3).double()
    torch.manual_seed(3)
    drawn = torch.randint(10, (negatives,)).tolist() if negatives < 9 else list(range(10))
    torch.manual_seed(3)
    losses = method(batches(*pair, rows=rows))
    z = [slow_network(head)(slow_network(encoder)(x.numpy())) for x in pair]
    bank = method.bank.numpy()
    expected = []
    for i, row in enumerate(rows.tolist()):
        others = [bank[entry] for entry in drawn if entry != row]
        expected.append(sum(slow_bank(view[i], bank[row], others, 0.3, slow_cosine) for view in z) / 2)
    np.testing.assert_allclose(losses.detach().numpy(), expected, atol=1e-5)


def test_entries_of_the_rows_of_a_step_move_half_way_to_the_mean_of_both_views(
    encoder: nn.Module, head: nn.Module
) -> None:
    method = MemoryBank(encoder, head, rows=20).double()
    naive = [np.array(entry) for entry in method.bank.tolist()]
    optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
    for step in range(15):
        rows = torch.randperm(20)[: 1 + step % 7]
        views = torch.randn(2, len(rows), 4, dtype=torch.float64)
        with torch.no_grad():
            z = head(encoder(views.flatten(0, 1))).view(2, len(rows), -1).numpy()
        method(batches(*torch.randn(2, 3, 4, dtype=torch.float64), rows=torch.arange(3)))  # an earlier look
        optimizer.zero_grad()
        method(batches(*views, rows=rows)).mean().backward()
        optimizer.step()
        method.after_step(step, 15)
        for i, row in enumerate(rows.tolist()):
            f = sum(z[a, i] / np.linalg.norm(z[a, i]) for a in (0, 1)) / 2
            entry = 0.5 * naive[row] + 0.5 * f
            naive[row] = entry / np.linalg.norm(entry)
        np.testing.assert_allclose(method.bank.numpy(), np.stack(naive), atol=1e-12)
    before = method.bank.clone()
    method.after_step(15, 15)
    assert torch.equal(method.bank, before)


def test_training_does_not_run_away_from_a_bank_that_lags_behind() -> None:
    method = MemoryBank(MLPEncoder((8,), hidden=64, out_features=16), ProjectionHead(16, hidden=16), rows=256)
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-3)
    x = torch.randn(256, 8)
    losses = []
    for step in range(120):
        rows = torch.randperm(256)[:32]
        losses.append(method(batches(*(x[rows] + 0.3 * torch.randn(2, 32, 8)), rows=rows)).mean())
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
        method.after_step(step, 120)
    z = nn.functional.normalize(method.embed(x).detach(), dim=1)
    assert float(z.std(dim=0).norm()) > 0.5  # 0 where all samples are one point, 1 where they are all around
    assert float(torch.stack(losses[-20:]).detach().mean()) < math.log(256) - 0.5


@pytest.mark.parametrize(("rows", "negatives"), [(6, 4096), (6, 3)])
def test_guessing_has_the_loss_of_projections_that_are_all_equal(rows: int, negatives: int, encoder: nn.Module) -> None:
    head = nn.Linear(5, 3).double()
    nn.init.zeros_(head.weight)
    method = MemoryBank(encoder, head, rows=rows, negatives=negatives, momentum=0.0).double()
    views = batches(*torch.randn(2, rows, 4, dtype=torch.float64), rows=torch.arange(rows))
    method(views)
    method.after_step(0, 1)
    assert max(method(views).tolist()) == pytest.approx(method.guessing_loss(6))


def test_a_row_that_the_bank_does_not_have_is_refused(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    method = MemoryBank(encoder, head, rows=5).double()
    with pytest.raises(UserError, match=r"'memorybank' has rows 0 to 4 and a batch holds 0 to 5: give the number of"):
        method(batches(*pair, rows=torch.arange(6)))


def test_no_batch_makes_the_host_look_at_numbers(encoder: nn.Module, head: nn.Module, pair: Pair) -> None:
    method = MemoryBank(encoder, head, rows=7).double()
    with Looks() as seen:  # type: ignore[no-untyped-call]
        method(batches(*pair, rows=torch.arange(6)))
        method.after_step(0, 3)
    assert seen.count == 0


def test_bad_settings_are_refused(encoder: nn.Module, head: nn.Module) -> None:
    with pytest.raises(UserError, match=r"rows is 1: it must be at least 2"):
        MemoryBank(encoder, head, rows=1)
    with pytest.raises(UserError, match=r"negatives is 0: it must be from 1 to"):
        MemoryBank(encoder, head, rows=5, negatives=0)
    with pytest.raises(UserError, match=r"momentum is 2: it must be from 0 to 1"):
        MemoryBank(encoder, head, rows=5, momentum=2)
    with pytest.raises(UserError, match=r"temperature is -1: it must be positive"):
        MemoryBank(encoder, head, rows=5, temperature=-1)
