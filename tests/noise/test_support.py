from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from pinoise.errors import UserError
from pinoise.noise import Support, draw_bank
from pinoise.noise import support as module
from pinoise.noise.rows import Nearest, nearest_others
from pinoise.noise.support import STALE_AFTER, Neighbours

ROWS = 40
Maker = Callable[..., Support]


class SlowSupport:
    """The rule of ``Support`` in double precision, one pair of rows at a time."""

    def __init__(self, bank: Tensor, metric: Tensor, *, k: int) -> None:
        self.k = k
        self.metric = metric.double().numpy().ravel()
        self.bank = [self.measured(row) for row in bank]
        self.crowding = [
            sum(sorted(self.square(row, self.bank[j]) for j in self.others(i))[:k]) / k
            for i, row in enumerate(self.bank)
        ]
        self.found = [self.nearest(row, self.others(i)) for i, row in enumerate(self.bank)]

    def measured(self, row: Tensor) -> np.ndarray:
        return np.asarray(row.double().numpy().ravel() / self.metric)

    @staticmethod
    def square(a: np.ndarray, b: np.ndarray) -> float:
        return float(sum((p - q) ** 2 for p, q in zip(a.tolist(), b.tolist(), strict=True)))

    def others(self, own: int | None) -> list[int]:
        return [j for j in range(len(self.bank)) if j != own]

    def nearest(self, row: np.ndarray, among: Sequence[int]) -> list[int]:
        return sorted(among, key=lambda j: self.square(row, self.bank[j]) - self.crowding[j])[: self.k]

    def of_row(self, i: int) -> set[int]:
        """Those that a row of the bank has among its neighbours and that have it among theirs."""
        return {j for j in self.found[i] if i in self.found[j]}

    def of_sample(self, x: Tensor, own: int | None) -> set[int]:
        """Those that a sample has among its neighbours, and that would have it among theirs, were it in the bank."""
        row = self.measured(x)
        crowding = sum(sorted(self.square(row, self.bank[j]) for j in self.others(own))[: self.k]) / self.k
        found = self.nearest(row, self.others(own))
        return {j for j in found if self.square(row, self.bank[j]) - crowding <= self.reach(j) + 1e-9}

    def reach(self, j: int) -> float:
        last = self.found[j][-1]
        return self.square(self.bank[j], self.bank[last]) - self.crowding[last]

    def spread(self) -> np.ndarray:
        pairs = [(i, j) for i in range(len(self.bank)) for j in self.of_row(i)]
        squares = sum(((self.bank[j] - self.bank[i]) * self.metric) ** 2 for i, j in pairs)
        return np.asarray(np.sqrt(squares / len(pairs) / 2))


def sets(neighbours: Neighbours) -> list[set[int]]:
    """The eligible neighbours of every sample."""
    pairs = zip(neighbours.positions, neighbours.eligible, strict=True)
    return [set(positions[eligible].tolist()) for positions, eligible in pairs]


def make_bank(rows: int = ROWS, shape: tuple[int, ...] = (4,), seed: int = 0) -> Tensor:
    """Rows of uneven density, as real ones are."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.rand(rows, generator=generator).add(0.2).reshape(-1, *[1] * len(shape))
    return size * torch.randn(rows, *shape, generator=generator)


def complete(bank: Tensor, *, k: int = 5, mutual: bool = True) -> Support:
    return Support(bank, numbers=torch.arange(len(bank)), rows=len(bank), k=k, mutual=mutual)


def partial(bank: Tensor, *, k: int = 5, mutual: bool = True) -> Support:
    """A bank of every third row of a training set."""
    return Support(bank, numbers=3 * torch.arange(len(bank)), rows=3 * len(bank), k=k, mutual=mutual)


# With one neighbour alone, everybody for whom a row is the nearest is at the same discounted distance from it: 0.
COUNTS = [2, 5, 12]
METRICS = [torch.ones(4), torch.tensor([0.2, 1.0, 3.0, 0.7])]


@pytest.mark.parametrize("metric", METRICS, ids=["even", "uneven"])
@pytest.mark.parametrize("k", COUNTS)
def test_the_table_holds_the_mutual_neighbours_in_the_metric(metric: Tensor, k: int) -> None:
    bank = make_bank().double()
    support, slow = complete(bank, k=k), SlowSupport(bank, metric, k=k)
    support.refresh(metric.double())
    rows = torch.randperm(ROWS)[:25]
    neighbours = support.neighbours(bank[rows], rows)
    assert neighbours.positions.shape == (25, k)
    assert sets(neighbours) == [slow.of_row(int(i)) for i in rows]


@pytest.mark.parametrize("metric", METRICS, ids=["even", "uneven"])
@pytest.mark.parametrize("k", COUNTS)
def test_a_bank_that_lacks_rows_is_searched_for_every_batch(metric: Tensor, k: int) -> None:
    bank = make_bank().double()
    support, slow = partial(bank, k=k), SlowSupport(bank, metric, k=k)
    support.refresh(metric.double())
    rows = torch.randperm(3 * ROWS)[:60]
    x = make_bank(60, seed=1).double()
    x[rows % 3 == 0] = bank[rows[rows % 3 == 0] // 3]
    expected = [
        slow.of_sample(sample, int(row) // 3 if row % 3 == 0 else None) for sample, row in zip(x, rows, strict=True)
    ]
    assert sets(support.neighbours(x, rows)) == expected
    assert all(int(row) // 3 not in found for row, found in zip(rows, expected, strict=True) if row % 3 == 0)


@pytest.mark.parametrize("make", [complete, partial])
def test_neighbours_do_not_depend_on_where_the_origin_is(make: Maker) -> None:
    # Years and kelvins are far from 0 beside their deviation, and so is a dead feature, which may have any value.
    bank, x = make_bank(), make_bank(20, seed=1)
    far = torch.tensor([2000.0, -300.0, 1e4, 0.0])
    near = make(bank)
    moved = make(bank + far)
    rows = near.numbers
    assert sets(moved.neighbours(bank + far, rows)) == sets(near.neighbours(bank, rows))
    assert sets(moved.neighbours(x + far)) == sets(near.neighbours(x))


def test_without_mutual_neighbours_are_those_of_scikit_learn() -> None:
    bank, x, metric = make_bank(), make_bank(20, seed=1), METRICS[1]
    reference = NearestNeighbors(n_neighbors=5).fit((bank / metric).numpy())
    for support in (complete(bank, mutual=False), partial(bank, mutual=False)):
        support.refresh(metric)
        theirs = reference.kneighbors((x / metric).numpy(), return_distance=False)
        assert sets(support.neighbours(x)) == [set(row) for row in theirs.tolist()]
        theirs = reference.kneighbors(return_distance=False)  # of its own rows, themselves left out
        rows = support.numbers
        assert sets(support.neighbours(bank, rows)) == [set(row) for row in theirs.tolist()]


def test_empty_rows_of_sparse_data_are_everyones_neighbours_only_without_mutual() -> None:
    documents, topics, empty = 80, 4, 3
    bank = torch.zeros(documents + empty, 15 * topics)
    for i in range(documents):
        first = 15 * (i % topics)
        bank[i, first : first + 15] = (torch.rand(15) < 0.4).float()
    share = {}
    for mutual in (False, True):
        support = complete(bank, k=10, mutual=mutual)
        found = sets(support.neighbours(bank[:documents], torch.arange(documents)))
        share[mutual] = sum(any(j >= documents for j in each) for each in found) / documents
        if mutual:
            kin = [j % topics == i % topics for i, each in enumerate(found) for j in each]
            assert sum(kin) > 0.9 * len(kin)
            assert all(found)
    assert share[False] > 0.7
    assert share[True] < 0.2


def test_a_training_row_is_not_its_own_neighbour_whether_its_number_is_told_or_not() -> None:
    bank = make_bank()
    told = sets(partial(bank).neighbours(bank, 3 * torch.arange(ROWS)))
    assert not any(i in found for i, found in enumerate(told))
    assert sets(partial(bank).neighbours(bank)) == told


@pytest.mark.parametrize("with_rows", [True, False])
def test_a_sample_without_a_mutual_neighbour_stays_where_it_is(with_rows: bool) -> None:
    # The nearest to 5, less the crowding, is 12, but 12 has 18.
    bank = torch.tensor([[0.0], [1.0], [5.0], [12.0], [18.0]])
    support = complete(bank, k=1) if with_rows else partial(bank, k=1)
    rows = torch.tensor([2, 4]) if with_rows else torch.tensor([6, 12])
    drawn = support.draw(bank[[2, 4]], rows=rows, times=20)
    assert drawn.shape == (20, 2, 1)
    assert drawn[:, 0].unique().tolist() == [5.0]
    assert drawn[:, 1].unique().tolist() == [12.0]


def test_draws_are_uniform_over_the_eligible_and_independent() -> None:
    bank = make_bank()
    support = complete(bank)
    rows = torch.tensor([i for i, found in enumerate(sets(support.neighbours(bank, torch.arange(ROWS)))) if found])
    drawn = support.draw(bank[rows], rows=rows, times=4000)
    places = torch.cdist(drawn, bank).argmin(dim=2)  # (times, m)
    for column, found in zip(places.T, sets(support.neighbours(bank[rows], rows)), strict=True):
        counts = np.bincount(column.numpy(), minlength=ROWS)
        assert set(np.flatnonzero(counts).tolist()) == found
        assert chisquare(counts[sorted(found)]).pvalue > 1e-5
    several = [i for i, found in enumerate(sets(support.neighbours(bank[rows], rows))) if len(found) > 1]
    same = (places[0::2] == places[1::2])[:, several].float().mean(dim=0)
    chance = torch.tensor([1 / len(found) for found in sets(support.neighbours(bank[rows], rows)) if len(found) > 1])
    assert bool(((same - chance).abs() < 5 * (chance * (1 - chance) / 2000).sqrt()).all())


@pytest.mark.parametrize(("moved", "taken"), [(0.9 * STALE_AFTER, False), (1.1 * STALE_AFTER, True)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_refresh_takes_a_metric_that_moved_far_enough_on_average(moved: float, taken: bool, sign: int) -> None:
    support = complete(make_bank())
    # Moves in opposite directions do not cancel, and one feature may move for all.
    scale = torch.tensor([sign * 2 * moved, -sign * 2 * moved, 0.0, 0.0]).exp()
    support.refresh(scale)
    assert torch.equal(support.metric, scale if taken else torch.ones(4))


def test_refresh_leaves_dead_features_out() -> None:
    bank = make_bank()
    bank[:, 1] = 3.0
    support = complete(bank)
    support.refresh(torch.tensor([0.2, 0.0, 3.0, 0.7]))
    torch.testing.assert_close(support.metric, torch.tensor([0.2, 1.0, 3.0, 0.7]))
    without = complete(bank[:, [0, 2, 3]])
    without.refresh(torch.tensor([0.2, 3.0, 0.7]))
    rows = torch.arange(ROWS)
    assert sets(support.neighbours(bank, rows)) == sets(without.neighbours(bank[:, [0, 2, 3]], rows))
    before = support.metric.clone()
    # Three live features out of four: their mean is beyond the limit, which that over all four is not.
    support.refresh(before * torch.tensor([math.exp(3.3 * STALE_AFTER), 0.0, 1.0, 1.0]))
    assert not torch.equal(support.metric, before)


def test_neighbours_are_searched_for_only_when_the_metric_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(rows: Tensor, **settings: object) -> Nearest:
        calls.append(len(rows))
        return nearest_others(rows, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "nearest_others", counted)
    bank, rows = make_bank(), torch.arange(5)
    support = complete(bank)
    for _ in range(3):
        support.draw(bank[rows], rows=rows)
    first = len(calls)
    support.refresh(torch.full((4,), 1.001))
    support.draw(bank[rows], rows=rows)
    assert first == len(calls) == 1
    support.refresh(METRICS[1])
    support.draw(bank[rows], rows=rows)
    assert len(calls) == 2


def test_k_is_at_most_one_less_than_the_bank_has_rows() -> None:
    bank = make_bank(4)
    support = complete(bank, k=10)
    assert support.k == 3
    assert sets(support.neighbours(bank, torch.arange(4))) == [{0, 1, 2, 3} - {i} for i in range(4)]
    assert len(partial(bank, k=10).neighbours(make_bank(6, seed=1)).positions[0]) == 3


def test_a_bank_without_a_pair_of_rows_is_refused() -> None:
    for rows in (0, 1):
        with pytest.raises(UserError, match=rf"needs at least 2 training rows: the bank has {rows}"):
            complete(torch.zeros(rows, 3))


def test_less_than_one_neighbour_is_refused() -> None:
    with pytest.raises(UserError, match=r"k is 0: a sample must have at least 1 neighbour"):
        complete(make_bank(), k=0)


@pytest.mark.parametrize("mutual", [True, False])
def test_a_table_of_rows_outside_the_bank_agrees_with_searching_for_each(
    mutual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.noise.support.BLOCK_ENTRIES", 7 * 4)  # of as many rows
    torch.manual_seed(0)
    data = torch.randn(60, 4)
    numbers = torch.arange(0, 60, 3)
    settings: dict[str, Any] = {"numbers": numbers, "rows": 60, "k": 5, "mutual": mutual}
    fetched: list[int] = []

    def fetch(rows: Tensor) -> Tensor:
        fetched.extend(rows.tolist())
        return data[rows]

    searching, looking_up = Support(data[numbers], **settings), Support(data[numbers], **settings, fetch=fetch)
    rows = torch.tensor([0, 1, 2, 30, 59])
    wanted, got = (support.neighbours(data[rows], rows) for support in (searching, looking_up))
    judged = [
        [set(zip(*(part[row].tolist() for part in found), strict=True)) for row in range(len(rows))]
        for found in (wanted, got)
    ]
    assert judged[0] == judged[1]
    outside = [row for row in range(60) if row % 3]  # those in the bank are known
    assert fetched == outside
    looking_up.neighbours(data[rows], rows)
    assert fetched == outside  # once for a metric
    looking_up.refresh(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    looking_up.neighbours(data[rows], rows)
    assert fetched == 2 * outside
    assert copy.deepcopy(looking_up).fetch is None


class Files:
    """Rows that are no tensor, which are gathered where they are asked for."""

    def __init__(self, data: Tensor) -> None:
        self.data = data
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: Tensor) -> Tensor:
        self.asked.append(len(rows))
        return self.data[rows]


@pytest.mark.parametrize("mutual", [True, False])
@pytest.mark.parametrize("table", [True, False])
def test_the_support_of_many_rows_is_some_of_them_for_each_of_which_neighbours_are_found(
    mutual: bool, table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SUPPORT_ROWS", 25)
    monkeypatch.setattr(module, "TABLE_ROWS", ROWS if table else ROWS - 1)
    files = Files(make_bank())
    support = Support.of(files, k=5, mutual=mutual)
    numbers = support.numbers.tolist()
    assert len(numbers) == 25
    assert numbers == sorted(set(numbers))
    assert torch.equal(support.bank, files.data[support.numbers])
    assert (support.rows, int(support.total), support.mutual) == (ROWS, ROWS, mutual)
    assert (support.fetch is not None) == table
    before = len(files.asked)
    rows = torch.arange(ROWS)
    found = support.neighbours(files.data, rows)
    assert (len(files.asked) > before) == table
    searched = Support(support.bank, numbers=support.numbers, rows=ROWS, k=5, mutual=mutual)
    assert sets(found) == sets(searched.neighbours(files.data, rows))


def test_a_bank_is_the_same_for_the_same_data_whatever_the_seed_and_leaves_chance_alone() -> None:
    data = make_bank()
    torch.manual_seed(1)
    first = draw_bank(data, most=10)[1]
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3), drawn)
    torch.manual_seed(2)
    assert torch.equal(draw_bank(data, most=10)[1], first)


@pytest.mark.parametrize("make", [complete, partial])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_of_other_samples_are_refused_with_the_first_of_them(make: Maker, dtype: torch.dtype) -> None:
    data = make_bank()
    support = make(data)
    rows = support.numbers[torch.tensor([5, 6, 8, 7])]
    with pytest.raises(
        UserError,
        match=rf"rows gives number {int(rows[2])} to a sample that differs from training row {int(rows[2])}: give",
    ):
        support.check_rows(data[[5, 6, 7, 8]].to(dtype), rows)
    moved = data[:3].clone()
    moved[1, 2] += 0.1  # a single entry tells
    with pytest.raises(UserError, match=rf"gives number {int(support.numbers[1])} to a sample"):
        support.check_rows(moved.to(dtype), support.numbers[:3])
