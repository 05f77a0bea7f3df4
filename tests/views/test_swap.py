from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pinoise.views import Batch, ScarfSwap, VimeSwap
from pinoise.views.swap import draw_columns, draw_marginals

M, D, BANK = 4000, 6, 50


def addressed(rows: int, columns: int) -> Tensor:
    """Values that tell where they come from: 1000 · column + row."""
    return 1000.0 * torch.arange(columns) + torch.arange(rows)[:, None]


def five_sigma(rate: float, trials: int) -> float:
    return 5 * math.sqrt(rate * (1 - rate) / trials)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.6, 1.0])
def test_scarf_replaces_the_stated_share_from_the_same_column_of_the_bank(rate: float) -> None:
    torch.manual_seed(0)
    x = torch.full((M, D), -1.0)
    swapped = ScarfSwap(addressed(BANK, D), rate=rate)(Batch(x, torch.arange(M))).x
    replaced = swapped != x
    assert float(replaced.float().mean()) == pytest.approx(rate, abs=five_sigma(rate, M * D) + 1e-7)
    columns = torch.arange(D).expand(M, D)
    assert torch.equal((swapped[replaced] // 1000).long(), columns[replaced])
    assert bool((swapped[replaced] % 1000 < BANK).all())


def test_scarf_masks_entries_independently() -> None:
    torch.manual_seed(0)
    x = torch.full((M, D), -1.0)
    replaced = (ScarfSwap(addressed(BANK, D), rate=0.6)(Batch(x, torch.arange(M))).x != x).double()
    correlation = torch.corrcoef(replaced.T) - torch.eye(D)
    assert float(correlation.abs().max()) < 5 / math.sqrt(M)


def test_scarf_follows_the_empirical_marginal_not_its_support() -> None:
    torch.manual_seed(0)
    bank = torch.tensor([[1.0, 5.0], [1.0, 6.0], [1.0, 7.0], [2.0, 8.0]])
    swapped = ScarfSwap(bank, rate=1.0)(Batch(torch.zeros(M, 2), torch.arange(M))).x
    assert float((swapped[:, 0] == 1).float().mean()) == pytest.approx(0.75, abs=five_sigma(0.75, M))
    for value in (5, 6, 7, 8):
        assert float((swapped[:, 1] == value).float().mean()) == pytest.approx(0.25, abs=five_sigma(0.25, M))


def test_scarf_draws_every_entry_of_a_row_from_its_own_bank_row() -> None:
    torch.manual_seed(0)
    swapped = ScarfSwap(addressed(BANK, D), rate=1.0)(Batch(torch.zeros(M, D), torch.arange(M))).x
    source = (swapped % 1000).double()  # (M, D): bank rows
    same = (source[:, 0] == source[:, 1]).double().mean()
    assert float(same) == pytest.approx(1 / BANK, abs=five_sigma(1 / BANK, M))
    assert float((torch.corrcoef(source.T) - torch.eye(D)).abs().max()) < 5 / math.sqrt(M)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 2, 3)])
def test_marginals_of_any_rank_stay_in_their_place(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    bank = addressed(BANK, 6).reshape(BANK, *shape)
    draw = draw_marginals(bank, torch.empty(20, *shape))
    assert draw.shape == (20, *shape)
    assert torch.equal((draw // 1000).reshape(20, 6), torch.arange(6.0).expand(20, 6))


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_vime_replaces_the_stated_share_from_the_same_column_of_the_batch(rate: float) -> None:
    torch.manual_seed(0)
    x = addressed(900, D)
    swapped = VimeSwap(rate=rate)(Batch(x, torch.arange(900))).x
    changed = rate * (1 - 1 / 900)  # a shuffled value stays where it was once in 900
    share = float((swapped != x).float().mean())
    assert share == pytest.approx(changed, abs=five_sigma(changed, 900 * D) + 1e-7)
    assert torch.equal((swapped // 1000).long(), torch.arange(D).expand(900, D))
    assert bool((swapped % 1000 < 900).all())


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 2, 3)])
def test_columns_are_shuffled_each_on_its_own(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = addressed(900, 6).reshape(900, *shape)
    draw = draw_columns(x).reshape(900, 6)
    assert torch.equal(draw.sort(dim=0).values, x.reshape(900, 6))
    source = (draw % 1000).double()
    assert float((torch.corrcoef(source.T) - torch.eye(6)).abs().max()) < 5 / math.sqrt(900)
