"""The order of very many rows: every row once, well mixed even if the data is sorted, and gathered ahead."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from pinoise.training import loop, order
from pinoise.training.loop import shuffled_rows, upcoming
from pinoise.training.order import BLOCK, ShuffledBlocks


@pytest.mark.parametrize("rows", [1, BLOCK, 70_001, 3 * order.POOL * BLOCK, 200_010])
def test_every_row_comes_once_whatever_the_slices(rows: int) -> None:
    blocks = ShuffledBlocks(rows, seed=3, epoch=5)
    whole = blocks[0:rows]
    assert np.array_equal(np.sort(whole), np.arange(rows))
    steps = [blocks[start : start + 777] for start in range(0, rows, 777)]
    assert np.array_equal(np.concatenate(steps), whole)
    assert np.array_equal(
        ShuffledBlocks(rows, seed=3, epoch=5)[rows // 2 : rows], whole[rows // 2 :]
    )  # as after a resume
    if rows > BLOCK:
        assert not np.array_equal(ShuffledBlocks(rows, seed=3, epoch=6)[0:rows], whole)
        assert not np.array_equal(ShuffledBlocks(rows, seed=4, epoch=5)[0:rows], whole)


def test_batches_of_sorted_data_vary_little_more_than_those_of_a_plain_shuffle() -> None:
    rows, batch = 1 << 20, 1024
    values = np.arange(rows) / rows  # sorted: the rows of a block are alike

    def variance(numbers: np.ndarray) -> float:
        whole = len(numbers) // batch * batch
        return float(values[numbers[:whole]].reshape(-1, batch).mean(axis=1).var())

    plain = variance(shuffled_rows(rows, seed=0, epoch=0).numpy())
    mixed = variance(ShuffledBlocks(rows, seed=0, epoch=0)[0:rows])
    expected = (1 / 12) / batch
    assert plain == pytest.approx(expected, rel=0.2)
    assert mixed < expected * (1 + batch / order.POOL) * 1.2  # 1,024 batches tell a variance to about 5 %
    single = np.arange(rows).reshape(-1, batch)  # what blocks without pools would give
    assert variance(np.random.default_rng(0).permutation(single).ravel()) > 100 * expected


def test_pairs_of_one_block_in_a_batch_are_as_few_as_stated() -> None:
    blocks, batch = ShuffledBlocks(1 << 20, seed=1, epoch=0), 2048
    pairs = []
    for start in range(0, 1 << 20, batch):
        counts = np.bincount(blocks[start : start + batch] // BLOCK)
        pairs.append((counts * (counts - 1) / 2).sum())
    assert np.mean(pairs) == pytest.approx(batch**2 / (2 * order.POOL), rel=0.1)


class Watched:
    """Rows in a file that note who reads them."""

    in_files = True

    def __init__(self, rows: int) -> None:
        self.rows, self.threads = rows, set[int]()

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: Tensor) -> Tensor:
        self.threads.add(threading.get_ident())
        return rows[:, None].float()


def gathered(
    rows: Watched, steps: range, *, left_out: Sequence[int] = (), share: int = 64, processes: int = 1, rank: int = 0
) -> list[tuple[Tensor, Tensor]]:
    """Return what steps of a run get, of which an epoch has as many as there are rows for."""
    kept = len(rows) - len(left_out)
    plan = {"seed": 1, "per_epoch": kept // (share * processes), "share": share, "processes": processes, "rank": rank}
    return list(upcoming(rows, torch.tensor(left_out, dtype=torch.int64), steps, **plan))


def test_batches_in_files_are_gathered_in_a_thread_and_are_the_same_after_a_resume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "MANY_ROWS", 1000)
    monkeypatch.setattr(order, "POOL", 32)
    rows = Watched(3000)
    found = gathered(rows, range(92), left_out=[5, 2999])
    assert rows.threads
    assert threading.get_ident() not in rows.threads
    for numbers, x in found:
        assert torch.equal(x[:, 0].long(), numbers)
    resumed = gathered(Watched(3000), range(60, 92), left_out=[5, 2999])
    assert all(torch.equal(mine[0], found[60 + step][0]) for step, mine in enumerate(resumed))
    epoch = torch.cat([numbers for numbers, _ in found[:46]])
    assert len(epoch.unique()) == len(epoch)
    assert not {5, 2999} & set(epoch.tolist())


def test_processes_share_a_step_without_a_row_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MANY_ROWS", 1000)
    alone = gathered(Watched(3000), range(7, 8), share=128)[0][0]
    both = [gathered(Watched(3000), range(7, 8), processes=2, rank=rank)[0][0] for rank in range(2)]
    assert torch.equal(torch.cat(both), alone)


def test_an_error_of_the_thread_is_raised_by_its_step() -> None:
    class Broken(Watched):
        def __getitem__(self, rows: Tensor) -> Tensor:
            if self.threads:
                raise OSError("gone")
            return super().__getitem__(rows)

    steps = upcoming(Broken(100), torch.arange(0), range(4), seed=0, per_epoch=4, share=25, processes=1, rank=0)
    next(steps)
    with pytest.raises(OSError, match="gone"):
        next(steps)
