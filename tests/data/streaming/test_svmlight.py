"""Files in svmlight's format in pieces: the same rows, labels and groups as in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pinoise.data.streaming import svmlight
from pinoise.data.streaming.records import Layout

from pinoise.data import LaterOptions, ReadOptions, read_file
from pinoise.data.lazy import LazyArray
from pinoise.errors import UserError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svmlight, "_TEXT_BLOCK", 4000)


def dense_file(path: Path, rows: int = 500, *, seed: int = 0, features: int = 12, labels: int = 4) -> Path:
    random = np.random.default_rng(seed)
    lines = []
    for row in range(rows):
        values = " ".join(
            f"{feature}:{random.normal():.4f}" for feature in range(1, features + 1) if random.random() < 0.8
        )
        lines.append(f"{random.integers(labels)} qid:{row // 10} {values}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_in_pieces_are_those_in_memory(tmp_path: Path) -> None:
    path = dense_file(tmp_path / "a.svm")
    held, known = read_file(path, ReadOptions(stream="never"))
    rows, learned = read_file(path, ReadOptions(stream="always"))
    assert learned == known
    assert isinstance(rows.train.x, LazyArray)
    np.testing.assert_array_equal(rows.train.x[:], held.train.x)
    np.testing.assert_array_equal(rows.train.y, held.train.y)
    np.testing.assert_array_equal(rows.train.groups, held.train.groups)
    assert rows.class_names == held.class_names
    assert rows.notes[:-1] == held.notes


def test_later_files_are_read_like_training_with_classes_of_their_own(tmp_path: Path) -> None:
    _, preparation = read_file(dense_file(tmp_path / "a.svm"), ReadOptions(stream="never"))
    other = dense_file(tmp_path / "b.svm", 200, seed=1, labels=6)
    held, rows = (
        preparation.read(other, LaterOptions(stream=stream), own_classes=True) for stream in ("never", "always")
    )
    np.testing.assert_array_equal(rows.train.x[:], np.asarray(held.train.x))
    np.testing.assert_array_equal(rows.train.y, held.train.y)
    assert rows.class_names == held.class_names
    with pytest.raises(UserError, match=r"the label '.' in data row .* is not one of the training labels"):
        preparation.read(other, LaterOptions(stream="always"))


def test_rows_that_are_mostly_zeros_stay_a_sparse_matrix(tmp_path: Path) -> None:
    path = tmp_path / "sparse.svm"
    path.write_text("\n".join(f"{row % 2} {row % 50 + 1}:1" for row in range(200)))
    held, known = read_file(path, ReadOptions(stream="never"))
    rows, learned = read_file(path, ReadOptions(stream="always"))
    assert learned == known
    assert (rows.train.x != held.train.x).nnz == 0  # type: ignore[union-attr]


def test_a_late_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    path = dense_file(tmp_path / "a.svm")
    path.write_text(path.read_text() + "1 qid:3 5:oops\n")
    with pytest.raises(UserError, match="line 501: the value 'oops' of feature 5 is not a number"):
        read_file(path, ReadOptions(stream="always"))


def sentences(read: Callable[[Any], object]) -> tuple[str, str]:
    """Return the mistakes that are found in memory and in pieces."""
    found = []
    for stream in ("never", "always"):
        with pytest.raises(UserError) as error:
            read(stream)
        found.append(str(error.value))
    return found[0], found[1]


def test_a_column_of_labels_cannot_be_named(tmp_path: Path) -> None:
    path = dense_file(tmp_path / "a.svm")
    held, rows = sentences(lambda stream: read_file(path, ReadOptions(label=1, stream=stream)))
    assert held == rows
    _, preparation = read_file(path)
    held, rows = sentences(lambda stream: preparation.read(path, LaterOptions(label=1, stream=stream)))
    assert held == rows


@pytest.mark.parametrize("lines", ["1 1:0.5", "9 qid:3 1:0.5", "nan qid:3 1:0.5\nnan qid:3 2:1", "1 qid:3 2:inf"])
def test_a_late_mistake_of_a_later_file_is_told_as_in_memory(lines: str, tmp_path: Path) -> None:
    _, preparation = read_file(dense_file(tmp_path / "a.svm"))
    other = dense_file(tmp_path / "b.svm", seed=1)
    other.write_text(f"{other.read_text()}{lines}\n")
    held, rows = sentences(lambda stream: preparation.read(other, LaterOptions(stream=stream)))
    assert held == rows


def test_training_on_an_array_reads_later_files_whose_features_begin_at_1(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(50, 12)))
    _, preparation = read_file(tmp_path / "a.npy")
    other = dense_file(tmp_path / "b.svm")
    held, rows = (preparation.read(other, LaterOptions(stream=stream)) for stream in ("never", "always"))
    np.testing.assert_array_equal(rows.train.x[:], np.asarray(held.train.x))
    np.save(tmp_path / "images.npy", np.random.default_rng(0).normal(size=(50, 4, 4)))
    _, preparation = read_file(tmp_path / "images.npy")
    assert len(set(sentences(lambda stream: preparation.read(other, LaterOptions(stream=stream))))) == 1


def test_rows_with_few_features_are_made_dense_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, preparation = read_file(dense_file(tmp_path / "a.svm"))
    other = tmp_path / "b.svm"
    other.write_text("".join(f"{row % 3} {row % 12 + 1}:{row}\n" for row in range(900)))
    seen: list[int] = []
    pack = Layout.pack

    def counting(layout: Layout, x: Any) -> Any:
        seen.append(len(x))
        return pack(layout, x)

    monkeypatch.setattr(Layout, "pack", counting)
    monkeypatch.setattr(svmlight, "_PIECE_VALUES", 120)
    held, rows = (preparation.read(other, LaterOptions(stream=stream)) for stream in ("never", "always"))
    assert max(seen) == 10
    np.testing.assert_array_equal(rows.train.x[:], np.asarray(held.train.x))
    np.testing.assert_array_equal(rows.train.y, held.train.y)
