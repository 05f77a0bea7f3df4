from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set


def jpeg(pixels: Any) -> bytes:
    image = pytest.importorskip("PIL.Image")
    content = io.BytesIO()
    image.fromarray(pixels).save(content, format="JPEG", quality=95)
    return content.getvalue()


def write(path: Path, images: list[bytes]) -> Path:
    offsets = np.cumsum([0, *map(len, images)])
    content = np.frombuffer(b"".join(images), dtype=np.uint8)
    labels = np.arange(len(images), dtype=np.uint8)
    np.savez(
        path,
        train_bytes=content,
        train_offsets=offsets,
        y_train=labels,
        test_bytes=content,
        test_offsets=offsets,
        y_test=labels,
        class_names=np.array([f"class {number}" for number in labels]),
    )
    return path


def test_jpeg_files_are_decoded_and_grayscale_gets_three_equal_channels(tmp_path: Path) -> None:
    ramp = np.tile(np.arange(64, dtype=np.uint8) * 3, (64, 1))
    colour = np.stack([ramp, ramp.T, np.full_like(ramp, 90)], axis=2)
    data = read_set(entry("tiny_imagenet20"), [write(tmp_path / "tiny.npz", [jpeg(colour), jpeg(ramp)])])
    x = np.asarray(data.train.x).astype(int)
    assert x.shape == (2, 64, 64, 3)
    assert data.train.x.dtype == np.uint8
    assert np.abs(x[0] - colour).mean() < 3
    assert np.abs(x[1] - ramp[..., None]).mean() < 3
    assert (x[1] == x[1][..., :1]).all()
    assert data.class_names == ("class 0", "class 1")


def test_without_pillow_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "tiny.npz", [b"never read"])
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match="decoded by Pillow: install it"):
        read_set(entry("tiny_imagenet20"), [path])
