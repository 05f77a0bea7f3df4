from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set

RNG = np.random.default_rng(0)
X = {side: RNG.integers(0, 100, (rows, 136)) for side, rows in (("train", 6), ("vali", 3), ("test", 4))}
GRADES = {"train": [2, 0, 4, 1, 3, 0], "vali": [0, 0, 0], "test": [0, 1, 2, 2]}
QUERIES = {"train": [1, 1, 16, 16, 16, 31], "vali": [10, 10, 25], "test": [13, 13, 13, 28]}


def text(side: str) -> bytes:
    """The publisher's lines: every feature is written, zeros too, and a space ends the line."""
    lines = []
    for row, grade, query in zip(X[side], GRADES[side], QUERIES[side], strict=True):
        features = " ".join(f"{number}:{value}" for number, value in enumerate(row, start=1))
        lines.append(f"{grade} qid:{query} {features} \n")
    return "".join(lines).encode()


@pytest.mark.parametrize("prefix", ["", "MSLR-WEB30K/"])
def test_the_first_fold_of_the_zip_is_read_with_its_queries(prefix: str, tmp_path: Path) -> None:
    path = tmp_path / "MSLR-WEB30K.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for fold in (2, 1):
            for side in ("train", "vali", "test"):
                archive.writestr(f"{prefix}Fold{fold}/{side}.txt", text(side) if fold == 1 else b"0 qid:9 1:1\n")
    data = read_set(entry("mslr_web30k"), [path])
    assert data.test is not None
    for part, side in ((data.train, "train"), (data.test, "test")):
        np.testing.assert_array_equal(np.asarray(part.x), X[side])
        assert part.y is not None
        assert part.y.tolist() == GRADES[side]
        assert part.groups is not None
        assert part.groups.tolist() == QUERIES[side]
    assert data.notes == ("Fold1/vali.txt of the publisher is left out",)


def test_the_compressed_sample_is_read_the_same_way(tmp_path: Path) -> None:
    paths = [tmp_path / f"msn1.fold1.{side}.5k.txt.gz" for side in ("train", "test")]
    for path, side in zip(paths, ("train", "test"), strict=True):
        path.write_bytes(gzip.compress(text(side)))
    data = read_set(entry("mslr_5k"), paths)
    np.testing.assert_array_equal(np.asarray(data.train.x), X["train"])
    assert (data.name, data.shape, data.n_classes) == ("mslr_5k", (136,), 5)


@pytest.mark.parametrize("grade", ["5", "0.5"])
def test_a_grade_out_of_range_is_named(grade: str, tmp_path: Path) -> None:
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(f"0 qid:1 1:1\n{grade} qid:1 1:1\n".encode()))
    with pytest.raises(UserError, match=rf"train.txt.gz, labels: the label '{grade}' has no entry among the 5 class"):
        read_set(entry("mslr_5k"), [path, path])
