from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pinoise.noise import Support
from pinoise.views import Batch, Neighbour

ROWS = 40


def make_bank(shape: tuple[int, ...] = (3,)) -> Tensor:
    return torch.randn(ROWS, *shape, generator=torch.Generator().manual_seed(0))


def make_support(bank: Tensor, *, every: int = 1, mutual: bool = True) -> Support:
    return Support(bank, numbers=every * torch.arange(ROWS), rows=every * ROWS, k=4, mutual=mutual)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2)])
@pytest.mark.parametrize("every", [1, 2], ids=["all rows", "some rows"])
def test_neighbour_is_a_draw_of_the_support_for_these_rows(shape: tuple[int, ...], every: int) -> None:
    bank = make_bank(shape)
    support = make_support(bank, every=every)
    places = torch.tensor([3, 30, 8, 8])
    batch = Batch(bank[places], every * places)
    torch.manual_seed(1)
    view = Neighbour(support)(batch)
    torch.manual_seed(1)
    assert torch.equal(view.x, support.draw(batch.x, rows=batch.rows)[0])
    assert torch.equal(view.rows, batch.rows)
    assert view.noise is None


def test_every_view_is_another_row_of_the_data_among_the_nearest() -> None:
    bank = make_bank()
    view = Neighbour(make_support(bank, mutual=False))
    order = torch.cdist(bank, bank).argsort(dim=1)[:, 1:5]  # the first is the row itself
    seen: list[set[int]] = [set() for _ in range(ROWS)]
    for draw in view.draw(Batch(bank, torch.arange(ROWS)), 60):
        distances = torch.cdist(draw.x, bank)
        assert float(distances.amin(dim=1).max()) < 1e-3
        for i, place in enumerate(distances.argmin(dim=1).tolist()):
            seen[i].add(place)
    assert seen == [set(row) for row in order.tolist()]
