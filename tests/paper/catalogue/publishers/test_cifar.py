from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pinoise.paper.catalogue import locate
from pinoise.paper.catalogue.loading import load


def write_cifar10(folder: Path) -> None:
    folder.mkdir()
    rows = np.random.default_rng(0).integers(0, 256, (6, 5, 3073), dtype=np.uint8)
    rows[:, :, 0] = np.arange(30).reshape(6, 5) % 10
    for batch in range(5):
        rows[batch].tofile(folder / f"data_batch_{batch + 1}.bin")
    rows[5].tofile(folder / "test_batch.bin")
    (folder / "batches.meta.txt").write_text("".join(f"thing {number}\n" for number in range(10)))


def test_a_folder_in_the_users_data_is_read_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    write_cifar10(tmp_path / "cifar-10-batches-bin")
    assert locate("cifar10") == {"cifar-10-binary.tar.gz": tmp_path / "cifar-10-batches-bin"}
    data = load("cifar10", download=False)
    assert data.test is not None
    assert (data.name, data.shape, len(data.train), len(data.test)) == ("cifar10", (32, 32, 3), 25, 5)
    assert np.asarray(data.train.y).tolist() == [number % 10 for number in range(25)]
    assert data.class_names == tuple(f"thing {number}" for number in range(10))
    assert data.train.x.dtype == np.uint8
