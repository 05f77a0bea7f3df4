from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Part, Samples
from pinoise.experiments.sources import sample_rows


def numbered(train: int, test: int) -> Dataset:
    """Rows that carry their own number as sample, label and group."""

    def part(rows: int) -> Part:
        numbers = np.arange(rows)
        return Part(np.repeat(numbers[:, None], 3, axis=1).astype(np.float32), numbers, numbers)

    return Dataset("toy", train=part(train), test=part(test), notes=("earlier",))


def dense(x: Samples) -> np.ndarray:
    return x.toarray() if isinstance(x, sp.csr_array) else np.asarray(x)


def test_a_draw_has_the_rows_asked_for_in_order_with_their_labels_and_groups() -> None:
    small = sample_rows(numbered(100, 40), train=30, test=10)
    assert small.test is not None
    for part, size, total in ((small.train, 30, 100), (small.test, 10, 40)):
        rows = dense(part.x)[:, 0]
        assert len(rows) == size == len(np.unique(rows))
        assert rows.max() < total
        assert (np.diff(rows) > 0).all()
        assert part.y is not None
        assert part.groups is not None
        np.testing.assert_array_equal(part.y, rows)
        np.testing.assert_array_equal(part.groups, rows)
    assert small.notes[:3] == (
        "earlier",
        "30 of 100 training rows were drawn at random (seed 0)",
        "10 of 40 test rows were drawn at random (seed 0)",
    )
    assert "classes without a training row" in small.notes[3]  # every row is a class of its own here


def test_every_row_is_as_likely_to_be_drawn() -> None:
    data = numbered(20, 5)
    counts = np.zeros(20)
    for seed in range(2000):
        counts[dense(sample_rows(data, train=5, test=5, seed=seed).train.x)[:, 0].astype(int)] += 1
    assert np.abs(counts - 500).max() < 5 * (2000 * 0.25 * 0.75) ** 0.5  # five standard deviations


def test_the_first_seed_trains_on_the_rows_that_a_run_of_so_many_rows_does() -> None:
    data = numbered(100, 40)
    np.testing.assert_array_equal(dense(sample_rows(data, train=30, test=10).train.x), dense(data.draw(30).train.x))


def test_a_set_that_is_small_enough_is_returned_itself() -> None:
    data = numbered(100, 40)
    assert sample_rows(data, train=100, test=40) is data
    unlabelled = Dataset("toy", train=Part(np.zeros((4, 2))))
    assert sample_rows(unlabelled, train=10, test=1) is unlabelled
    assert sample_rows(unlabelled, train=2, test=1).test is None


@pytest.mark.parametrize("kind", ["sparse", "mapped"])
def test_sparse_and_mapped_samples_give_the_rows_that_an_array_gives(kind: str, tmp_path: Path) -> None:
    data = numbered(100, 40)
    assert data.test is not None
    expected = sample_rows(data, train=30, test=10)

    def convert(part: Part, name: str) -> Part:
        if kind == "sparse":
            return replace(part, x=sp.csr_array(part.x))
        np.save(tmp_path / name, dense(part.x))
        return replace(part, x=np.load(tmp_path / name, mmap_mode="r"))

    other = replace(data, train=convert(data.train, "train.npy"), test=convert(data.test, "test.npy"))
    small = sample_rows(other, train=30, test=10)
    assert small.test is not None
    assert expected.test is not None
    assert isinstance(small.train.x, sp.csr_array) == (kind == "sparse")
    np.testing.assert_array_equal(dense(small.train.x), dense(expected.train.x))
    np.testing.assert_array_equal(dense(small.test.x), dense(expected.test.x))
