"""Damaged image files: a file is refused, or has the pixels that a strict decoder gives it too."""

from __future__ import annotations

import io
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile

from pinoise.data.images.decoding import decode, inspect_image
from pinoise.data.options import ReadOptions
from pinoise.data.readers import open_source
from pinoise.errors import UserError

FORMATS = ["png", "jpg", "progressive.jpg", "gif", "webp", "tif", "packed.tif", "bmp", "ppm"]
SAVED: dict[str, dict[str, Any]] = {
    "progressive.jpg": {"progressive": True},
    "webp": {"lossless": True},
    "packed.tif": {"compression": "tiff_lzw"},
}


def saved(kind: str) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 20, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(
        stream, Image.registered_extensions()["." + kind.split(".")[-1]], **SAVED.get(kind, {})
    )
    return stream.getvalue()


def strictly(content: bytes) -> Any:
    """The pixels of a file as Pillow decodes it in one go, None where it refuses."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")) as image:
            image.load()
            turn = image.getexif().get(0x0112, 1) if image.format != "TIFF" else 1
            return None if turn != 1 else np.asarray(image.convert("RGB"))
    except Exception:
        return None


def damages(content: bytes, *, seed: int, number: int) -> list[bytes]:
    """The file with single bits turned over, and cut off, at places of its whole length."""
    rng = np.random.default_rng(seed)
    made = []
    for place in rng.integers(0, len(content), number).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        made += [bytes(flipped), content[:place]]
    return made


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_damage_is_refused_or_decoded_as_a_strict_reader_does(kind: str, tmp_path: Path) -> None:
    assert not ImageFile.LOAD_TRUNCATED_IMAGES
    path = tmp_path / f"a.{kind}"
    refused = 0
    for content in damages(saved(kind), seed=len(kind), number=40):
        path.write_bytes(content)
        expected = strictly(content)
        found = inspect_image(path)
        pixels = None
        with suppress(UserError):
            pixels = decode(path, shape=(*found.size, 3) if found.problem is None else (24, 20, 3), resize=False)
        if expected is None:
            refused += 1
            assert pixels is None
            assert found.problem is not None or kind.endswith("jpg")  # inspected coarsely, decoded strictly
        else:
            assert found.problem is None
            np.testing.assert_array_equal(pixels, expected)
    assert refused > 20


def test_one_turned_bit_of_a_compressed_picture_is_refused_in_every_case(tmp_path: Path) -> None:
    content = saved("png")
    start = content.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", content[start - 8 : start - 4])
    rng = np.random.default_rng(1)
    for place in rng.integers(start, start + length, 40).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "a.png").write_bytes(bytes(damaged))
        assert inspect_image(tmp_path / "a.png").problem is not None, place
        with pytest.raises(UserError, match=r"a\.png cannot be decoded \(.+\): repair or remove it\.$"):
            decode(tmp_path / "a.png", shape=(24, 20, 3), resize=False)


def test_metadata_behind_damaged_pixels_does_not_hide_the_damage(tmp_path: Path) -> None:
    content = saved("png")
    exif = b"eXIf" + b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    chunk = struct.pack(">I", len(exif) - 4) + exif + struct.pack(">I", zlib.crc32(exif))
    whole = content[:-12] + chunk + content[-12:]
    (tmp_path / "a.png").write_bytes(whole)
    assert inspect_image(tmp_path / "a.png").size == (20, 24)  # turned by its metadata
    damaged = bytearray(whole)
    damaged[whole.index(b"IDAT") + 400] ^= 4
    (tmp_path / "a.png").write_bytes(bytes(damaged))
    assert inspect_image(tmp_path / "a.png").problem is not None


def test_a_turned_tiff_is_turned_once(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.tif", tiffinfo={0x0112: 6})
    assert inspect_image(tmp_path / "a.tif").size == (9, 6)
    np.testing.assert_array_equal(decode(tmp_path / "a.tif", shape=(9, 6, 3), resize=False), np.rot90(pixels, k=3))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_among_images_is_refused_or_skipped_and_never_waited_for(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(saved("png"))
    Image.new("RGB", (20, 24)).save(tmp_path / "3.png")
    os.mkfifo(tmp_path / "4.png")
    with pytest.raises(UserError, match=r"4\.png cannot be decoded \(it is a pipe, not a regular file\)"):
        open_source(tmp_path)
    data, _ = open_source(tmp_path, ReadOptions(corrupt="skip"))
    assert len(data.train) == 4
