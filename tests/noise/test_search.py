from __future__ import annotations

import numpy as np
import pytest
import torch

from pinoise.noise import nearest
from pinoise.noise import rows as noise_rows
from pinoise.noise.rows import nearest_others


@pytest.mark.parametrize("entries", [1, 3 * 17, 1 << 23])
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("discounts", [False, True])
def test_nearest_agrees_with_a_sort_of_all_distances(
    entries: int, skips: bool, discounts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise_rows, "BLOCK_ENTRIES", entries)
    queries, bank = torch.randn(13, 3), torch.randn(17, 3)
    skip = torch.randint(-1, 17, (13,)) if skips else None
    discount = torch.rand(17) if discounts else None
    if skip is not None:
        skip[::3] = -1
    found = nearest(queries, bank, k=4, skip=skip, discount=discount)
    assert found.positions.shape == found.distances.shape == (13, 4)
    for i in range(13):
        score = np.sum((queries[i].double().numpy() - bank.double().numpy()) ** 2, axis=1)
        score -= 0 if discount is None else discount.double().numpy()
        if skip is not None and skip[i] >= 0:
            score[int(skip[i])] = np.inf
        order = found.distances[i].argsort()
        assert found.positions[i][order].tolist() == np.argsort(score)[:4].tolist()
        np.testing.assert_allclose(found.distances[i][order].numpy(), np.sort(score)[:4], atol=1e-5)


@pytest.mark.parametrize("entries", [1, 1 << 23])
def test_nearest_others_subtracts_the_crowding_of_each_row(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_rows, "BLOCK_ENTRIES", entries)
    rows = torch.randn(17, 3)
    found = nearest_others(rows, k=4, squares=rows.square().sum(dim=1))
    distances = np.sum((rows.double().numpy()[:, None] - rows.double().numpy()) ** 2, axis=2)
    np.fill_diagonal(distances, np.inf)
    crowding = np.sort(distances, axis=1)[:, :4].mean(axis=1)
    np.testing.assert_allclose(found.crowding.numpy(), crowding, atol=1e-5)
    for i in range(17):
        discounted = distances[i] - crowding
        assert set(found.positions[i].tolist()) == set(np.argsort(discounted)[:4].tolist())
        np.testing.assert_allclose(np.sort(found.distances[i].numpy()), np.sort(discounted)[:4], atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_nearest_keeps_its_precision_under_autocast(dtype: torch.dtype) -> None:
    queries, bank = 300 * torch.randn(13, 3), 300 * torch.randn(40, 3)  # squares overflow in half precision
    exact = nearest(queries, bank, k=4)
    with torch.autocast("cpu", dtype):
        mixed = nearest(queries, bank, k=4)
    assert torch.equal(mixed.positions, exact.positions)
    assert torch.equal(mixed.distances, exact.distances)
