"""Conversions in the cache: used while they fit, made again when they do not."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.data.dataset import Dataset, Part
from pinoise.paper.catalogue import loading
from pinoise.paper.catalogue.loading import converted, load

SPARSE = Dataset(
    "toy",
    train=Part(sp.csr_array(np.eye(4, dtype=np.float32)), np.array([0, 1, 0, 1]), np.array([5, 5, 6, 6])),
    test=Part(sp.csr_array(np.ones((2, 4), dtype=np.float32)), np.array([1, 0])),
    feature_names=("a", "b", "ü", "d e"),
    class_names=("no", "yes"),
    notes=("made by hand",),
)
PIXELS = Part(np.arange(48, dtype=np.uint8).reshape(2, 4, 3, 2), np.array([0, 1]))
PICTURES = Dataset("toy", train=PIXELS, test=PIXELS.take(np.array([1])))


class Reader:
    """A reader that counts how often it is asked."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self.calls = 0

    def __call__(self) -> Dataset:
        self.calls += 1
        return self.data


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.txt"
    path.write_text("1 1:2")
    return path


def same(left: Dataset, right: Dataset) -> None:
    for one, other in ((left.train, right.train), (left.test, right.test)):
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        assert type(one.x) is type(other.x)
        assert one.x.dtype == other.x.dtype
        dense = [x.toarray() if isinstance(x, sp.csr_array) else x for x in (one.x, other.x)]
        np.testing.assert_array_equal(dense[0], dense[1])
        for mine, yours in ((one.y, other.y), (one.groups, other.groups)):
            assert (mine is None) == (yours is None)
            np.testing.assert_array_equal(mine, yours)
    assert replace(left, train=right.train, test=right.test, notes=()) == replace(right, notes=())


@pytest.mark.parametrize("data", [SPARSE, PICTURES])
def test_the_second_load_takes_the_conversion(data: Dataset, source: Path, tmp_path: Path) -> None:
    read = Reader(data)
    first, second = (converted("toy", [(source, None)], read, cache=tmp_path) for _ in range(2))
    assert read.calls == 1
    same(first, data)
    same(second, data)
    assert first.notes == second.notes == data.notes


def test_a_changed_source_checksum_or_version_makes_it_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reader(SPARSE)
    converted("toy", [(source, None)], read, cache=tmp_path)
    os.utime(source, (1, 1))
    converted("toy", [(source, None)], read, cache=tmp_path)
    assert read.calls == 2
    converted("toy", [(source, "a" * 64)], read, cache=tmp_path)
    assert read.calls == 3
    os.utime(source, (2, 2))  # a file with a checksum may be touched
    converted("toy", [(source, "a" * 64)], read, cache=tmp_path)
    assert read.calls == 3
    monkeypatch.setattr(loading, "VERSION", loading.VERSION + 1)
    converted("toy", [(source, "a" * 64)], read, cache=tmp_path)
    assert read.calls == 4


def test_a_conversion_that_cannot_be_kept_is_used_with_a_warning(
    source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "converted").write_text("a file where the folder should be")
    read = Reader(SPARSE)
    same(converted("toy", [(source, None)], read, cache=tmp_path), SPARSE)
    assert read.calls == 1
    assert "the conversion of toy is not kept" in caplog.text


def test_a_parsed_set_of_the_catalogue_is_kept_and_a_plain_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    for name, text in (("epsilon_normalized.bz2", b"1 1:2\n-1 2:3\n"), ("epsilon_normalized.t.bz2", b"1 2000:1\n")):
        (tmp_path / name).write_bytes(gzip.compress(text))
    cache = tmp_path / "cache"
    first, second = load("epsilon", cache=cache), load("epsilon", cache=cache)
    same(first, second)
    load("digits", cache=cache)
    assert [path.name for path in (cache / "converted").iterdir() if path.is_dir()] == ["epsilon"]
