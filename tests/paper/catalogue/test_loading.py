"""The catalogue's promises, held against the data wherever it is on this machine."""

from __future__ import annotations

import gzip
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.catalogue import entries, entry, locate
from pinoise.paper.catalogue.loading import READERS, SET_READERS, load

NAMES = [found.name for found in entries()]
PREPARED = [
    found.name
    for found in entries()
    if found.combined or (found.files and all(f.url is None and f.sha256 for f in found.files))
]


def test_names_are_unique_and_the_first_needs_no_file() -> None:
    assert len(NAMES) == len(set(NAMES)) == 43
    assert entries()[0].files == ()
    assert {"har", "reuters10k", "reuters21578", "epsilon", "mslr_web30k"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_described_completely(name: str) -> None:
    found = entry(name)
    assert found.name == name
    assert "\n" not in found.title
    assert all((found.title, found.shape, found.split, found.licence, found.source))
    assert len(found.rows) == 2
    assert found.rows[0] > 0
    assert found.class_names is None or len(found.class_names) == found.classes
    assert found.reader in {*READERS, *SET_READERS}
    for file in found.files:
        assert all(
            re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in (file.sha256, *file.repacked) if sha256 is not None
        )
        assert file.url is None or file.url.startswith("https://")
        assert file.url or file.sha256 or file.hint


def test_no_two_files_of_the_catalogue_share_a_name() -> None:
    # Two sets may be read from one archive, which then is one file.
    files = {file for found in entries() for whole in found.files for file in whole.wrappings}
    assert len(files) == len({file.name for file in files})


@pytest.mark.parametrize("name", ["digits", "wine", "breast_cancer"])
def test_bundled_sets_are_as_declared(name: str) -> None:
    check_as_declared(name)


@pytest.mark.parametrize("name", PREPARED)
def test_prepared_sets_are_as_declared(name: str, real_data: Path) -> None:
    found = locate(name)
    assert all(path is not None and path.parent == real_data for path in found.values())
    check_as_declared(name)


def check_as_declared(name: str) -> None:
    found, data = entry(name), load(name, download=False)
    assert data.name == name
    assert data.shape == found.shape
    assert data.n_classes == found.classes
    assert (len(data.train), len(data.test) if data.test else 0) == found.rows
    assert data.feature_names is None or len(data.feature_names) == np.prod(found.shape)
    assert data.class_names is None or len(data.class_names) == found.classes
    if data.train.y is not None:
        assert np.array_equal(np.unique(data.train.y), np.arange(found.classes))
    for part in (data.train, data.test) if data.test else (data.train,):
        assert (part.y is None) == (found.classes == 0)
        if part.y is not None:
            assert part.y.dtype == np.int64
            assert set(np.unique(part.y)) <= set(range(found.classes))
        if part.groups is not None:
            assert part.groups.shape == (len(part),)


@pytest.mark.parametrize("name", ["hapt561", "hapt_raw", "wisdm", "mslr_5k"])
def test_subjects_users_and_queries_are_groups_that_the_split_keeps_apart(name: str, real_data: Path) -> None:
    data = load(name)
    assert data.test is not None
    assert data.train.groups is not None
    assert data.test.groups is not None
    assert not set(data.train.groups.tolist()) & set(data.test.groups.tolist())


def test_a_publishers_zip_is_found_and_read_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    with pytest.raises(UserError, match=r"MSLR-WEB30K.zip was not found: get it from https://www.microsoft.com"):
        load("mslr_web30k", cache=tmp_path / "cache")
    path = tmp_path / "MSLR-WEB30K.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for side in ("train", "test"):
            archive.writestr(f"Fold1/{side}.txt", "1 qid:1 1:3 136:2\n0 qid:2 1:3\n")
    assert locate("mslr_web30k") == {"MSLR-WEB30K.zip": path}
    assert load("mslr_web30k").shape == (136,)


def test_a_set_that_is_not_on_this_machine_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINOISE_DATA", raising=False)
    assert locate("hapt561", cache=tmp_path) == {"har_hapt561.npz": None}
    with pytest.raises(UserError, match=r"set PINOISE_DATA.* to the folder that holds har_hapt561.npz"):
        load("hapt561", cache=tmp_path)
    with pytest.raises(UserError, match=r"allow its download from https://archive.ics.uci.edu"):
        load("har", cache=tmp_path, download=False)
    assert not list(tmp_path.iterdir())


def test_the_epsilon_sample_never_passes_for_epsilon(real_data: Path, tmp_path: Path) -> None:
    assert all(locate("epsilon_sample", cache=tmp_path).values())
    assert not any(locate("epsilon", cache=tmp_path).values())


def write_idx_set(folder: Path) -> None:
    folder.mkdir(parents=True)
    for side in ("train", "t10k"):
        images = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 3, 4])
        (folder / f"{side}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{side}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 2, 0, 9])))


def test_fashion_mnist_comes_from_the_users_folder_the_cache_or_debians(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        f"fashion-mnist/{side}-{what}-ubyte.gz" for side in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
    ]
    monkeypatch.setattr("pinoise.paper.catalogue.fetch.SYSTEM_FOLDER", tmp_path / "system")
    assert locate("fashion_mnist") == {"fashion_mnist.npz": real_data / "fashion_mnist.npz"}
    monkeypatch.delenv("PINOISE_DATA")
    cache = tmp_path / "cache"
    assert locate("fashion_mnist", cache=cache) == dict.fromkeys(names)
    with pytest.raises(
        UserError, match=r"train-images-idx3-ubyte\.gz was not found: allow its download from https://git"
    ):
        load("fashion_mnist", cache=cache, download=False)
    for root in (tmp_path / "system", cache, tmp_path / "mine"):
        write_idx_set(root / "fashion-mnist")
        if root.name == "mine":
            monkeypatch.setenv("PINOISE_DATA", str(root))
        assert locate("fashion_mnist", cache=cache) == {name: root / name for name in names}
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte\.gz is not the file expected"):
        load("fashion_mnist", cache=cache)
