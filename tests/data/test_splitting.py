from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from pinoise.data import dataset
from pinoise.data.dataset import Dataset, Part, split, stratified_rows
from pinoise.errors import UserError


def numbered(n: int, y: list[int] | None = None, groups: list[int] | None = None) -> Dataset:
    """A data set whose only feature is the row number."""
    return Dataset(
        "toy",
        Part(
            np.arange(n).reshape(n, 1),
            None if y is None else np.array(y, dtype=np.int64),
            None if groups is None else np.array(groups, dtype=np.int64),
        ),
    )


def rows(part: Part | None) -> list[int]:
    assert part is not None
    return [int(row) for row in np.asarray(part.x)[:, 0]]


@given(st.lists(st.integers(0, 6), min_size=2, max_size=60), st.floats(0.01, 0.99), st.integers(0, 3))
def test_every_row_is_on_exactly_one_side_with_its_label(y: list[int], fraction: float, seed: int) -> None:
    parts = split(numbered(len(y), y), test_fraction=fraction, seed=seed)
    train, test = rows(parts.train), rows(parts.test)
    assert train
    assert test
    assert sorted(train + test) == list(range(len(y)))
    assert parts.test is not None
    assert np.asarray(parts.test.y).tolist() == [y[row] for row in test]
    assert any("held out" in note for note in parts.notes)


def test_classes_keep_their_proportions() -> None:
    y = [0] * 80 + [1] * 20
    test = split(numbered(100, y)).test
    assert test is not None
    assert np.bincount(np.asarray(test.y)).tolist() == [16, 4]


def test_a_class_of_one_row_stays_in_training() -> None:
    parts = split(numbered(21, [0] * 10 + [1] * 10 + [2]), test_fraction=0.3)
    assert 20 in rows(parts.train)
    assert parts.notes[0] == "1 class has a single row, which stays in training"


def test_too_few_rows_for_all_classes_are_split_at_random_with_a_note() -> None:
    parts = split(numbered(6, [0, 1, 2, 3, 4, 5]))
    assert len(rows(parts.test)) == 2
    assert "too few" in parts.notes[0]


def test_groups_stay_together() -> None:
    groups = [row // 4 for row in range(40)]
    parts = split(numbered(40, [row % 2 for row in range(40)], groups))
    assert parts.test is not None
    assert len(parts.test) == 8
    assert not set(np.asarray(parts.train.groups)) & set(np.asarray(parts.test.groups))
    assert parts.notes == ("held out 8 of 40 rows for the test part, by group (seed 0)",)


def test_a_source_with_a_test_part_is_returned_as_it_is() -> None:
    data = Dataset("toy", Part(np.zeros((4, 1))), Part(np.ones((1, 1))))
    assert split(data) is data


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 20])
def test_an_impossible_fraction_is_refused(fraction: float) -> None:
    with pytest.raises(UserError, match="test_fraction is"):
        split(numbered(10), test_fraction=fraction)


def test_a_single_row_cannot_be_split() -> None:
    with pytest.raises(UserError, match="toy has 1 row"):
        split(numbered(1))


@pytest.mark.parametrize("groups", [None, [row // 4 for row in range(1000)]])
def test_very_many_rows_are_split_alike_and_listed_in_four_bytes_each(
    groups: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "MANY_ROWS", 500)
    parts = split(numbered(1000, [row % 2 for row in range(1000)], groups))
    assert parts.test is not None
    assert sorted(rows(parts.train) + rows(parts.test)) == list(range(1000))
    assert 150 < len(parts.test) < 250
    for part in (parts.train, parts.test):
        assert part.origin is not None
        assert part.origin.rows.dtype == np.int32
        assert part.origin.rows.tolist() == rows(part)
    if groups is not None:
        assert not set(np.asarray(parts.train.groups)) & set(np.asarray(parts.test.groups))


def test_shares_are_scikit_learns_own() -> None:
    y = np.repeat([0, 1, 2], [31, 17, 9]).astype(np.int64)
    expected = train_test_split(np.arange(57), test_size=0.2, random_state=0, stratify=y)
    for found, reference in zip(stratified_rows(y), expected, strict=True):
        assert found.tolist() == sorted(reference)
