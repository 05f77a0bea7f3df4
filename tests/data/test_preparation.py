"""What every kind of preparation does alike, whatever training had."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.problems import write_images

from pinoise.data import (
    InMemory,
    LaterOptions,
    Preparation,
    ReadOptions,
    from_arrays,
    open_source,
    preparation_from_json,
    read_file,
)
from pinoise.data.arrays import ArrayEncoding
from pinoise.data.preparation import ArrayPreparation
from pinoise.errors import UserError


def of_table(folder: Path) -> Preparation:
    (folder / "training.csv").write_text("a,t,y\n1,u,p\n2,v,q\n3,u,p\n")
    return read_file(folder / "training.csv", ReadOptions(label="y"))[1]


def of_arrays(folder: Path) -> Preparation:
    return from_arrays(np.arange(48, dtype=np.uint8).reshape(2, 4, 6), ["p", "q"])[1]


def of_images(folder: Path) -> Preparation:
    return read_file(write_images(folder / "training", "p/a.png", "q/b.png"))[1]


def of_catalogue(folder: Path) -> Preparation:
    return open_source("wine")[1]


KINDS: list[Callable[[Path], Preparation]] = [of_table, of_arrays, of_images, of_catalogue]


def of_shape(*shape: int) -> Preparation:
    """The preparation of a set of the catalogue with samples of this shape."""
    return ArrayPreparation(ArrayEncoding(shape=shape), "catalogue")


@pytest.mark.parametrize("make", KINDS)
def test_every_kind_survives_json_and_reads_sets_of_the_catalogue(
    make: Callable[[Path], Preparation], tmp_path: Path
) -> None:
    preparation = make(tmp_path)
    stored = preparation_from_json(json.loads(json.dumps(preparation.to_json())))
    assert stored == preparation
    assert stored.read("digits").shape == (64,)
    with pytest.raises(UserError, match="'digits' has no named columns, so label=y cannot apply"):
        stored.read("digits", LaterOptions(label="y"))
    with pytest.raises(UserError, match="unknown data set 'digts': did you mean 'digits'"):
        stored.read("digts")


@pytest.mark.parametrize("make", KINDS)
def test_a_damaged_record_of_every_kind_is_refused(make: Callable[[Path], Preparation], tmp_path: Path) -> None:
    stored = make(tmp_path).to_json()
    for key in list(stored)[1:]:
        with pytest.raises(UserError, match=r"the stored preparation.* is damaged: it has"):
            preparation_from_json({name: value for name, value in stored.items() if name != key})


@pytest.mark.parametrize(
    "stored",
    [{"columns": [{"name": "n"}]}, {"labels": {"values": []}}],
    ids=["a column without fields", "labels without fields"],
)
def test_a_damaged_part_of_a_record_is_refused(stored: dict[str, Any], tmp_path: Path) -> None:
    whole = of_table(tmp_path).to_json()
    with pytest.raises(UserError, match="the stored preparation is damaged"):
        preparation_from_json(whole | {"encoding": whole["encoding"] | stored})


def test_labels_in_memory_come_beside_the_samples() -> None:
    _, preparation = from_arrays(pa.table({"a": [1.0, 2.0]}), ["q", "p"])
    later = preparation.read(InMemory(pa.table({"a": [5.0]}), ["q"], name="later"))
    assert (later.name, np.asarray(later.train.y).tolist()) == ("later", [1])
    with pytest.raises(UserError, match="later has 1 rows but 2 labels"):
        preparation.read(InMemory(pa.table({"a": [5.0]}), ["q", "q"], name="later"))
    assert preparation.read(InMemory(pa.table({"a": [5.0]}), ["unknown"]), labelled=False).train.y is None


def test_a_label_column_that_training_did_not_have_brings_its_own_classes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    _, preparation = read_file(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("b,a,kind\n2,1,new\n4,3,old\n6,5,new\n")
    for label in ("kind", 2, -1):
        later = preparation.read(tmp_path / "b.csv", LaterOptions(label=label))
        assert (np.asarray(later.train.y).tolist(), later.class_names) == ([0, 1, 0], ("new", "old"))
        assert np.asarray(later.train.x).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert preparation.read(tmp_path / "b.csv", LaterOptions(label="kind"), labelled=False).train.y is None
    with pytest.raises(UserError, match=r"unknown column of .*'kid': did you mean 'kind'"):
        preparation.read(tmp_path / "b.csv", LaterOptions(label="kid"))


def test_a_feature_of_training_cannot_become_the_label(tmp_path: Path) -> None:
    sentence = r"column {} was a feature in training, so it cannot be the label: train again with --label"
    with pytest.raises(UserError, match=sentence.format("'t'")):
        of_table(tmp_path).read(tmp_path / "training.csv", LaterOptions(label="t"))


def test_after_a_set_of_the_catalogue_files_of_every_kind_are_read_with_their_own_classes(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "later", "ant/a.png", "cow/b.png", "cow/c.png")
    later = of_shape(4, 6, 3).read(folder)
    assert (later.train.x.shape, later.class_names) == ((3, 4, 6, 3), ("ant", "cow"))
    assert np.asarray(later.train.y).tolist() == [0, 1, 1]
    with pytest.raises(
        UserError, match=r"is a folder of images, but training had an array of samples of shape \(13,\)"
    ):
        of_catalogue(tmp_path).read(folder)

    np.savez(tmp_path / "a.npz", X=np.eye(2, 13), y=np.array([5, 3]))
    later = of_catalogue(tmp_path).read(tmp_path / "a.npz")
    assert (later.class_names, np.asarray(later.train.y).tolist()) == (("3", "5"), [1, 0])
    with pytest.raises(UserError, match=r"has samples of shape \(13,\), but training had \(64,\)"):
        of_shape(64).read(tmp_path / "a.npz")

    (tmp_path / "a.csv").write_text("a,b,y\n1,2,p\n3,4,q\n")
    later = of_shape(2).read(tmp_path / "a.csv", LaterOptions(label="y"))
    assert (later.shape, later.class_names) == ((2,), ("p", "q"))


def test_a_sparse_set_of_the_catalogue_keeps_later_samples_sparse() -> None:
    preparation = ArrayPreparation(ArrayEncoding(shape=(3,), sparse=True), "catalogue")
    assert sp.issparse(preparation.read(np.eye(3)).train.x)
