from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from pinoise.data.dataset import fingerprint, fingerprint_parts, split, stratified_rows
from pinoise.data.images.decoding import ImageFiles
from pinoise.data.options import ReadOptions
from pinoise.data.preparation import ArrayPreparation
from pinoise.data.readers import open_for_training, open_source
from pinoise.errors import UserError
from pinoise.paper.catalogue import is_name


def test_a_name_gives_the_set_of_the_catalogue_and_a_preparation_of_its_shape() -> None:
    data, preparation = open_source("wine")
    assert (data.name, data.shape) == ("wine", (13,))
    assert isinstance(preparation, ArrayPreparation)
    assert preparation.kind == "catalogue"
    assert (preparation.shape, preparation.encoding.labels) == ((13,), None)
    assert is_name("wine")
    assert not is_name("wine.csv")


def test_a_file_called_like_a_set_is_read_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wine").write_text("1 1:2\n0 1:3\n")
    assert open_source("wine")[0].shape == (13,)
    with pytest.raises(UserError, match=r"wine has an unknown extension: allowed are \.csv"):
        open_source("./wine")


@pytest.mark.parametrize("path", ["nowhere/table", "./table", "table.csv", "~/table.parquet"])
def test_a_path_that_does_not_exist_is_not_taken_for_a_name(path: str) -> None:
    with pytest.raises(UserError, match=r"the file .*table.* does not exist"):
        open_source(path)


def test_one_row_is_too_few(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"a\.csv has 1 row: learning by contrast needs at least 2"):
        open_source(str(tmp_path / "a.csv"))
    with pytest.raises(UserError, match="rows is 1: learning by contrast needs at least 2"):
        open_source("wine", ReadOptions(rows=1))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_fingerprint_changes_with_a_value_the_order_the_shape_and_the_type(layout: type) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    before = fingerprint(layout(x))
    assert fingerprint(layout(x.copy())) == before
    changed = x.copy()
    changed[123, 2] += 1e-9
    others = [changed, x[::-1], x[:-1], x[:, :-1], x.astype(np.float32)]
    found = {fingerprint(layout(other)) for other in others}
    assert len(found | {before}) == 6


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_are_all_the_same_are_refused(sparse: bool, tmp_path: Path) -> None:
    x = np.full((30, 4), 2.5)
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(x)) if sparse else np.savez(tmp_path / "a.npz", X=x)
    with pytest.raises(UserError, match=r"all 30 rows of .*a\.npz are the same: there is nothing to learn from"):
        open_source(str(tmp_path / "a.npz"))
    x[29, 3] = 2.0
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(x)) if sparse else np.savez(tmp_path / "a.npz", X=x)
    assert len(open_source(str(tmp_path / "a.npz"))[0].train) == 30


def write_labelled(path: Path, rows: int = 50) -> str:
    path.write_text("a,b,y\n" + "".join(f"{row * 7 % 53},{row * row % 17},{'pq'[row % 2]}\n" for row in range(rows)))
    return str(path)


def test_labelled_rows_are_held_out_from_training_always_in_the_same_way(tmp_path: Path) -> None:
    source = write_labelled(tmp_path / "a.csv")
    data, _ = open_for_training(source, ReadOptions(label="y"))
    expected = split(open_source(source, ReadOptions(label="y"))[0])
    assert data.test is not None
    assert expected.test is not None
    np.testing.assert_array_equal(data.train.x, expected.train.x)
    np.testing.assert_array_equal(data.test.x, expected.test.x)
    assert "held out 10 of 50 rows for the test part, by class (seed 0)" in data.notes

    fewer, _ = open_for_training(source, ReadOptions(label="y", rows=20))
    assert fewer.test is not None
    np.testing.assert_array_equal(fewer.test.x, data.test.x)
    kept = {tuple(row) for row in np.asarray(fewer.train.x).tolist()}
    assert len(kept) == 20
    assert kept <= {tuple(row) for row in np.asarray(data.train.x).tolist()}


def test_without_labels_and_with_a_test_part_nothing_is_held_out(tmp_path: Path) -> None:
    data, _ = open_for_training(write_labelled(tmp_path / "a.csv"), ReadOptions(drop=("y",)))
    assert (len(data.train), data.test, data.notes) == (50, None, ())
    assert len(open_for_training("wine")[0].train) == 142


def test_too_little_left_to_train_on_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.csv has 1 row left to train on: learning by contrast needs at least 2"):
        open_for_training(write_labelled(tmp_path / "a.csv", rows=2), ReadOptions(label="y"))
    y = np.array([0, 1] * 5)
    x = np.zeros((10, 1))
    x[stratified_rows(y)[1][0]] = 1.0  # the only row that differs is held out
    np.savez(tmp_path / "b.npz", X=x, y=y)
    with pytest.raises(UserError, match=r"all 8 rows left to train on of .*b\.npz are the same"):
        open_for_training(str(tmp_path / "b.npz"))


def test_a_change_in_either_part_changes_the_fingerprint_of_both() -> None:
    data = open_source("wine")[0]
    assert data.test is not None
    seen = {fingerprint_parts(data), fingerprint_parts(replace(data, test=None))}
    for part in ("train", "test"):
        x = np.array(getattr(data, part).x)
        x[5, 2] += 1e-3
        seen.add(fingerprint_parts(replace(data, **{part: replace(getattr(data, part), x=x)})))
    assert len(seen) == 4


def test_a_folder_of_images_is_opened_with_its_options_and_held_out_rows_stay_files(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 8), color=(number, 0, 0)).save(path)
    source = str(tmp_path / "photos")
    data, preparation = open_for_training(source, ReadOptions(size=4, color="gray", rows=10))
    assert isinstance(preparation, ArrayPreparation)
    assert preparation.kind == "images"
    assert data.test is not None
    assert isinstance(data.train.x, ImageFiles)
    assert isinstance(data.test.x, ImageFiles)
    assert (data.train.x.shape, data.test.x.shape) == ((10, 4, 4), (4, 4, 4))
    with pytest.raises(
        UserError, match=r"wine has samples of shape \(13,\), which are no images, so size cannot apply"
    ):
        open_source("wine", ReadOptions(size=4))
