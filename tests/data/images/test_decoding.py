from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from pinoise.data.images.decoding import Inspection, decode, inspect_image, pillow
from pinoise.errors import UserError

RNG = np.random.default_rng(0)


def noise(*shape: int) -> Any:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def smooth(height: int, width: int) -> Any:
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows * 255 // height, columns * 255 // width, (rows + columns) % 256], axis=2).astype(np.uint8)


@pytest.mark.parametrize("ending", ["png", "bmp", "tif", "ppm", "webp"])
def test_pixels_of_lossless_files_come_back(ending: str, tmp_path: Path) -> None:
    pixels = noise(7, 5, 3)
    path = tmp_path / f"a.{ending}"
    Image.fromarray(pixels).save(path, lossless=True)  # which only WebP has to be told
    np.testing.assert_array_equal(decode(path, shape=(7, 5, 3), resize=False), pixels)
    assert inspect_image(path) == Inspection((7, 5), colour=True)


@pytest.mark.parametrize("ending", ["png", "pgm", "gif"])
def test_gray_files_stay_gray_or_get_three_equal_channels(ending: str, tmp_path: Path) -> None:
    pixels = noise(6, 4)
    path = tmp_path / f"a.{ending}"
    Image.fromarray(pixels).save(path)
    np.testing.assert_array_equal(decode(path, shape=(6, 4), resize=False), pixels)
    np.testing.assert_array_equal(decode(path, shape=(6, 4, 3), resize=False), np.repeat(pixels[..., None], 3, axis=2))
    assert inspect_image(path).size == (6, 4)
    assert not inspect_image(path).colour


def test_colour_becomes_gray_by_luminance(tmp_path: Path) -> None:
    pixels = noise(9, 8, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    expected = pixels @ np.array([0.299, 0.587, 0.114])
    assert np.abs(decode(tmp_path / "a.png", shape=(9, 8), resize=False) - expected).max() <= 1


@pytest.mark.parametrize("mode", ["1", "LA", "P", "RGBA", "CMYK"])
def test_other_modes_are_converted(mode: str, tmp_path: Path) -> None:
    image = Image.fromarray(smooth(8, 8)).convert(mode)
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    image.save(path)
    np.testing.assert_array_equal(decode(path, shape=(8, 8, 3), resize=False), np.asarray(image.convert("RGB")))
    assert inspect_image(path).colour == (mode in ("P", "RGBA", "CMYK"))


def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path) -> None:
    values = RNG.integers(0, 1 << 16, (5, 6)).astype(np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    np.testing.assert_array_equal(decode(tmp_path / "a.png", shape=(5, 6), resize=False), values // 256)
    assert not inspect_image(tmp_path / "a.png").colour


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_as_its_camera_was(orientation: int, tmp_path: Path) -> None:
    image = Image.fromarray(smooth(16, 24))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / "a.jpg", exif=exif, quality=95)
    with Image.open(tmp_path / "a.jpg") as file:
        expected = np.asarray(ImageOps.exif_transpose(file))
    np.testing.assert_array_equal(decode(tmp_path / "a.jpg", shape=expected.shape, resize=False), expected)
    assert inspect_image(tmp_path / "a.jpg").size == expected.shape[:2]


@pytest.mark.parametrize(("height", "width"), [(8, 8), (6, 9), (9, 6)])
@pytest.mark.parametrize("source", [(40, 60), (60, 40), (8, 8), (5, 7)])
def test_an_image_is_scaled_by_its_shorter_side_and_cropped_about_the_centre(
    source: tuple[int, int], height: int, width: int, tmp_path: Path
) -> None:
    Image.fromarray(smooth(*source)).save(tmp_path / "a.png")
    found = decode(tmp_path / "a.png", shape=(height, width, 3), resize=True).astype(int)
    scale = max(height / source[0], width / source[1])
    # The pixel of the source under the centre of each pixel found, if the centres of both lie on each other.
    rows = (np.arange(height) + 0.5 - height / 2) / scale + source[0] / 2
    columns = (np.arange(width) + 0.5 - width / 2) / scale + source[1] / 2
    expected = np.stack(np.broadcast_arrays(rows[:, None] * 255 / source[0], columns * 255 / source[1]), axis=2)
    inner = (slice(1, -1), slice(1, -1))
    step = max(255 / source[0], 255 / source[1])
    assert np.abs(found[..., :2] - expected)[inner].max() <= 0.75 * step + 2


def photograph(height: int, width: int, orientation: int, path: Path) -> Any:
    """Save an image with detail of every scale as a JPEG file, and return it as a viewer shows it."""
    rows, columns = np.mgrid[:height, :width]
    waves = [np.sin(rows / a + columns / b) for a, b in ((40, 90), (7, 11), (2, 3))]
    pixels = np.stack([128 + 40 * waves[i % 3] + 40 * waves[(i + 1) % 3] for i in range(3)], axis=2)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels.astype(np.uint8)).save(path, exif=exif, quality=95)
    with Image.open(path) as file:
        return ImageOps.exif_transpose(file)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("shape", [(16, 16, 3), (12, 24, 3), (30, 10)])
def test_a_large_photograph_is_decoded_coarsely_and_looks_as_if_it_were_not(
    shape: tuple[int, ...], orientation: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = photograph(480, 640, orientation, tmp_path / "a.jpg").convert("RGB" if len(shape) == 3 else "L")
    expected = np.asarray(ImageOps.fit(shown, (shape[1], shape[0]), Image.Resampling.BILINEAR)).astype(float)
    decoded: list[tuple[int, int]] = []
    fit = ImageOps.fit

    def remember(image: Any, *arguments: Any) -> Any:
        decoded.append(image.size)
        return fit(image, *arguments)

    monkeypatch.setattr(ImageOps, "fit", remember)
    found = decode(tmp_path / "a.jpg", shape=shape, resize=True)
    assert np.abs(found - expected).mean() < 2
    ((width, height),) = decoded
    assert width < shown.size[0] / 1.9
    assert width >= 3 * shape[1]
    assert height >= 3 * shape[0]


def test_another_size_without_resizing_is_an_error(tmp_path: Path) -> None:
    Image.fromarray(noise(4, 6)).save(tmp_path / "a.png")
    with pytest.raises(UserError, match=r"a\.png is 4 × 6 pixels: the others are 8 × 6"):
        decode(tmp_path / "a.png", shape=(8, 6), resize=False)


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_a_cut_file_is_found_by_inspection_and_named_when_decoded(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    Image.fromarray(noise(32, 32, 3)).save(path)
    path.write_bytes(path.read_bytes()[:-400])
    assert inspect_image(path).problem is not None
    with pytest.raises(UserError, match=rf"{name} cannot be decoded \(.*truncated.*\): repair or remove it"):
        decode(path, shape=(32, 32, 3), resize=True)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "not an image of a known"), (b"%!PS-Adobe-3.0 EPSF-3.0\n", "not an image of a known")],
)
def test_what_is_no_image_is_reported(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    assert problem in str(inspect_image(tmp_path / "a.jpg").problem)
    assert inspect_image(tmp_path / "absent.jpg").problem == "No such file or directory"


FILES = {}
for ending in ("png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm"):
    stream = io.BytesIO()
    Image.fromarray(smooth(16, 16)).save(stream, format=ending)
    FILES[ending] = stream.getvalue()


def test_without_pillow_the_user_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match=r"install it with pip install 'pinoise\[vision\]'"):
        pillow()
    with pytest.raises(UserError, match="decoded by Pillow"):
        inspect_image(tmp_path / "a.png")
