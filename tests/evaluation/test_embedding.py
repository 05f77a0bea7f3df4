from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from pinoise.errors import UserError
from pinoise.evaluation.embedding import WHOLE, check_embeddings, check_labelled, embed, write_embedding

Z = np.arange(6, dtype=np.float32).reshape(3, 2)
COLUMNS = ("age", "pinda0")
NAMES = ("cat/a.png", "dog/b, c.png", "dog/ü.png")


def named(files: tuple[str, ...]) -> pa.Table:
    return pa.table({"file": files})


class Rows:
    """A source that remembers which rows were asked for."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x
        self.asked: list[list[int]] = []

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: torch.Tensor, /) -> torch.Tensor:
        assert rows.dtype == torch.int64
        self.asked.append(rows.tolist())
        return self.x[rows]


@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_embedding_does_not_depend_on_the_batch_size(batch_size: int) -> None:
    x = torch.randn(7, 2, 3, generator=torch.Generator().manual_seed(0))
    z = embed(lambda batch: batch.flatten(1)[:, :4] * 2, Rows(x), batch_size=batch_size)
    np.testing.assert_array_equal(z, 2 * x.flatten(1)[:, :4].numpy())
    assert z.dtype == np.float32


def test_rows_are_gathered_in_order_and_in_batches() -> None:
    source = Rows(torch.zeros(5, 2))
    embed(lambda batch: batch, source, batch_size=2)
    assert source.asked[1:] == [[0, 1], [2, 3], [4]]
    assert source.asked[0] == [0]  # how wide is a row?


def test_wide_rows_come_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinoise.evaluation.embedding._BATCH_VALUES", 20)
    x = torch.randn(7, 2, 4, generator=torch.Generator().manual_seed(0))
    source = Rows(x)
    z = embed(lambda batch: batch.flatten(1), source)
    assert source.asked[1:] == [[0, 1], [2, 3], [4, 5], [6]]
    np.testing.assert_array_equal(z, x.flatten(1).numpy())
    wider = Rows(torch.zeros(3, 21))
    embed(lambda batch: batch, wider)
    assert wider.asked[1:] == [[0], [1], [2]]


def test_no_graph_is_recorded() -> None:
    layer = torch.nn.Linear(2, 3)
    outputs: list[torch.Tensor] = []

    def encode(batch: torch.Tensor) -> torch.Tensor:
        outputs.append(layer(batch))
        return outputs[-1]

    z = embed(encode, Rows(torch.ones(4, 2)))
    assert not outputs[0].requires_grad
    assert z.shape == (4, 3)


@pytest.mark.parametrize(
    ("dtype", "result"), [(torch.float64, np.float64), (torch.float32, np.float32), (torch.bfloat16, np.float32)]
)
def test_the_encoder_gets_the_asked_dtype_and_the_result_is_plain_numpy(dtype: torch.dtype, result: type) -> None:
    seen: list[torch.dtype] = []

    def encode(batch: torch.Tensor) -> torch.Tensor:
        seen.append(batch.dtype)
        return batch

    z = embed(encode, Rows(torch.ones(3, 2)), dtype=dtype)
    assert seen == [dtype]
    assert z.dtype == result
    np.testing.assert_array_equal(z, 1)


@pytest.mark.parametrize("shape", [(3,), (3, 2, 2), (2, 2)])
def test_an_encoder_that_returns_no_matrix_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"encoder returned the shape .* for 3 rows"):
        embed(lambda batch: torch.zeros(shape), Rows(torch.ones(3, 2)))


def test_nothing_to_embed_is_an_error() -> None:
    with pytest.raises(UserError, match="no rows to embed"):
        embed(lambda batch: batch, Rows(torch.ones(0, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_found_by_part_and_row(value: float) -> None:
    good, bad = np.zeros((5, 3)), np.zeros((5, 3))
    bad[[2, 4], 1] = value
    with pytest.raises(UserError, match=r"row 2 of the training embedding is not finite \(2 such rows"):
        check_embeddings(bad, good)
    with pytest.raises(UserError, match="row 2 of the test embedding"):
        check_embeddings(good, bad)


def test_shapes_that_do_not_fit_are_errors() -> None:
    with pytest.raises(UserError, match="2 features but the test embedding has 3"):
        check_embeddings(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(UserError, match=r"shape \(4,\)"):
        check_embeddings(np.zeros(4), np.zeros((4, 3)))
    with pytest.raises(UserError, match=r"test embedding has the shape \(0, 2\)"):
        check_embeddings(np.zeros((4, 2)), np.zeros((0, 2)))


def test_labels_that_do_not_fit_are_errors() -> None:
    x, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    with pytest.raises(UserError, match=r"training labels have the shape \(3,\)"):
        check_labelled(x, y[:3], x, y)
    with pytest.raises(UserError, match=r"test labels have the shape \(4, 1\)"):
        check_labelled(x, y, x, y[:, None])
    with pytest.raises(UserError, match="every training row has the label 0"):
        check_labelled(x[:1], y[:1], x, y)
    with pytest.raises(UserError, match="every training row has the label 6"):
        check_labelled(x, np.full(4, 6), x, y)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_a_table_are_named_in_its_first_column(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"z.{ending}"
    write_embedding(path, {"test": Z}, columns=COLUMNS, beside={"test": named(NAMES)})
    table = pyarrow.csv.read_csv(path) if ending == "csv" else pyarrow.parquet.read_table(path)
    assert table.column_names == ["file", "age", "pinda0"]
    assert tuple(table.column("file").to_pylist()) == NAMES
    np.testing.assert_array_equal(table.column("pinda0"), Z[:, 1])
    write_embedding(path, {"test": Z}, columns=COLUMNS, force=True)
    table = pyarrow.csv.read_csv(path) if ending == "csv" else pyarrow.parquet.read_table(path)
    assert table.column_names == ["age", "pinda0"]


def test_an_archive_has_an_array_of_names_for_each_part(tmp_path: Path) -> None:
    path = tmp_path / "z.npz"
    write_embedding(
        path, {"train": Z, "test": Z[:1]}, columns=COLUMNS, beside={"train": named(NAMES), "test": named(NAMES[:1])}
    )
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive) == ["X_test", "X_train", "names_test", "names_train"]
        assert tuple(archive["names_train"]) == NAMES
        assert tuple(archive["names_test"]) == NAMES[:1]
        np.testing.assert_array_equal(archive["X_train"], Z)
    write_embedding(path, {"train": Z}, columns=COLUMNS, force=True)
    with np.load(path) as archive:
        assert list(archive) == ["X_train"]


def test_an_archive_of_data_without_parts_has_one_array(tmp_path: Path) -> None:
    write_embedding(tmp_path / "z.npz", {WHOLE: Z}, columns=COLUMNS, beside={WHOLE: named(NAMES)})
    with np.load(tmp_path / "z.npz") as archive:
        assert sorted(archive) == ["X", "names"]


@pytest.mark.parametrize("ending", ["NPY", "Npz", "CSV"])
def test_a_file_keeps_its_name_in_capitals_and_leaves_no_other(ending: str, tmp_path: Path) -> None:
    write_embedding(tmp_path / f"z.{ending}", {"train": Z}, columns=COLUMNS)
    assert [path.name for path in tmp_path.iterdir()] == [f"z.{ending}"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "z.npy"
    write_embedding(path, {"train": Z}, columns=COLUMNS)
    with pytest.raises(ValueError, match="unpack"):
        write_embedding(path, {"train": Z, "test": Z}, columns=COLUMNS, force=True)
    np.testing.assert_array_equal(np.load(path), Z)
    assert [found.name for found in tmp_path.iterdir()] == ["z.npy"]


def test_what_a_killed_process_left_of_the_file_is_removed_and_other_files_stay(tmp_path: Path) -> None:
    left, other = tmp_path / ".z.0123456789abcdef.part.npy", tmp_path / ".y.0123456789abcdef.part.npy"
    for file in (left, other):
        file.write_bytes(b"half")
    write_embedding(tmp_path / "z.npy", {WHOLE: np.eye(3)}, columns=["a", "b", "c"])
    assert sorted(file.name for file in tmp_path.iterdir()) == [other.name, "z.npy"]
