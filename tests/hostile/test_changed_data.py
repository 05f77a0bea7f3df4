"""Data that changed after training, and caches that somebody altered: noticed, whatever changed and wherever."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from pinoise.data import fingerprint_parts
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.arrays import read_npy
from pinoise.data.readers import open_source

Command = Callable[..., Any]
TINY = [*("--set", "encoder.hidden=8", "--set", "encoder.out_features=4"), *("--epochs", "2", "--device", "cpu")]


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PINOISE_CACHE", str(cache))
    return cache


def a_set(seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    part = Part(rng.normal(size=(3000, 4)), np.arange(3000) % 3, np.arange(3000) // 10)
    return Dataset("toy", part, part.take(np.arange(50)))


def test_every_value_of_a_set_counts() -> None:
    data = a_set()
    known = fingerprint_parts(data)
    assert known == fingerprint_parts(a_set())
    rng = np.random.default_rng(1)
    for row, column in zip(rng.integers(0, 3000, 30), rng.integers(0, 4, 30), strict=True):
        x = np.array(data.train.x)
        x[row, column] = np.nextafter(x[row, column], 9)
        assert fingerprint_parts(replace(data, train=replace(data.train, x=x))) != known
    for field in ("y", "groups"):
        numbers = np.array(getattr(data.train, field))
        numbers[100] += 1
        for other in (numbers, None):
            changed: dict[str, Any] = {field: other}
            assert fingerprint_parts(replace(data, train=replace(data.train, **changed))) != known
    assert fingerprint_parts(replace(data, test=None)) != known
    assert fingerprint_parts(replace(data, train=data.train.take(np.arange(3000)[::-1]))) != known
    assert fingerprint_parts(replace(data, train=replace(data.train, names=("a",) * 3000))) != known


@pytest.mark.parametrize("which", ["data", "indices", "indptr"])
def test_every_number_of_a_sparse_matrix_counts(which: str) -> None:
    matrix = sp.csr_array(np.random.default_rng(0).poisson(0.3, (2000, 30)).astype(np.float64))
    known = fingerprint_parts(Dataset("toy", Part(matrix)))
    other = matrix.copy()
    numbers = getattr(other, which)
    numbers[len(numbers) // 2 + 1] += 1
    assert fingerprint_parts(Dataset("toy", Part(other))) != known


def test_an_array_in_a_file_has_the_fingerprint_of_its_values(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(500, 3))
    np.save(tmp_path / "x.npy", x)
    stored = read_npy(tmp_path / "x.npy").train.x
    assert fingerprint_parts(Dataset("a", Part(stored))) == fingerprint_parts(Dataset("a", Part(x)))


def write_table(path: Path, rows: int = 1600) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{a:.6f},{b:.6f},{'xy'[row % 2]}" for row, (a, b) in enumerate(rng.normal(size=(rows, 2)))]
    path.write_text("\n".join(["a,b,class", *lines]) + "\n")


def change_one_cell(path: Path, row: int = 777) -> None:
    lines = path.read_text().splitlines()
    lines[row] = "0.123456," + lines[row].split(",", 1)[1]
    path.write_text("\n".join(lines) + "\n")


def test_one_changed_cell_stops_resume_and_evaluate_and_is_told_by_embed(
    pinoise: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "d.csv")
    made = pinoise("train", "--data", "d.csv", "--label", "class", "--out", "r", *TINY)
    assert made.code == 0, made.err
    change_one_cell(tmp_path / "d.csv")
    assert "has changed since" in pinoise("train", "--resume", "r", "--epochs", "3").sentence
    assert "has changed since" in pinoise("evaluate", "r").sentence


def write_images(folder: Path, number: int = 8) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name in range(number):
        Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)).save(folder / f"{name:03}.bmp")


def test_an_image_that_changed_in_silence_is_noticed(tmp_path: Path) -> None:
    write_images(tmp_path / "images")
    before, _ = open_source(tmp_path / "images")
    known, pixels = fingerprint_parts(before), np.array(before.train.x[:])
    path = tmp_path / "images/004.bmp"
    state, content = path.stat(), bytearray(path.read_bytes())
    content[-3] ^= 0x80
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # so that neither size nor time tells
    after, _ = open_source(tmp_path / "images")
    assert fingerprint_parts(after) != known
    assert (np.array(after.train.x[:]) != pixels).any(axis=(1, 2, 3)).tolist() == [row == 4 for row in range(8)]
