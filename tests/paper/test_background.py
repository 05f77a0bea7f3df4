from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from pinoise.data.dataset import Part
from pinoise.data.layout import to_image_layout
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.paper.background import BackgroundNoise, bytes_of, read_masks
from pinoise.training.build import make_site
from pinoise.training.config import Settings, override, parse_assignment, parse_settings
from pinoise.views import Batch, GaussianNoise

SCALE = torch.tensor([1.0, 0.5, 0.0])[:, None, None].expand(3, 6, 5)


def make(rows: int = 10) -> tuple[BackgroundNoise, torch.Tensor]:
    masks = torch.rand(rows, 6, 5) < 0.4
    return BackgroundNoise(SCALE, masks, rows=rows, sigma=2.0), masks


def test_nothing_but_the_background_of_the_sample_s_own_row_changes() -> None:
    view, masks = make()
    rows = torch.tensor([7, 0, 7, 3])
    x = torch.randn(4, 3, 6, 5)
    result = view(Batch(x, rows))
    for i, row in enumerate(rows.tolist()):
        for channel in range(3):
            changed = result.x[i, channel] != x[i, channel]
            assert torch.equal(changed, masks[row] if channel < 2 else torch.zeros_like(changed))
    assert torch.equal(result.rows, rows)


def test_on_a_background_of_everything_it_is_random_noise() -> None:
    batch = Batch(torch.randn(4, 3, 6, 5), torch.arange(4))
    torch.manual_seed(3)
    everywhere = BackgroundNoise(SCALE, torch.ones(4, 6, 5, dtype=torch.bool), rows=4, sigma=0.3)(batch).x
    torch.manual_seed(3)
    assert torch.equal(everywhere, GaussianNoise(SCALE, sigma=0.3)(batch).x)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (torch.zeros(10, 6, 5), "masks must be bool, .* got torch.float32"),
        (torch.zeros(10, 6, 5, dtype=torch.uint8), "masks must be bool, .* got torch.uint8"),
        (torch.zeros(9, 6, 5, dtype=torch.bool), "9 masks for 10 training rows"),
        (torch.zeros(10, 5, 6, dtype=torch.bool), r"shape \(10, 5, 6\) .* = \(10, 6, 5\)"),
        (torch.zeros(10, 30, dtype=torch.bool), r"shape \(10, 30\) .* = \(10, 6, 5\)"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks: torch.Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        BackgroundNoise(SCALE, masks, rows=10)


@pytest.mark.parametrize("factor", [None, 1, 255])
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_masks_of_a_file_are_read(tmp_path: Path, factor: int | None, ending: str) -> None:
    masks = np.random.default_rng(0).random((4, 3, 2)) < 0.5
    written = masks if factor is None else (factor * masks).astype(np.uint8)
    path = tmp_path / f"masks{ending}"
    if ending == ".npy":
        np.save(path, written)
    else:
        np.savez(path, something=written)
    read = read_masks(path, rows=4, size=(3, 2))
    assert read.dtype == np.bool_
    assert np.array_equal(read, masks)


def test_of_all_masks_those_of_the_chosen_images_are_returned(tmp_path: Path) -> None:
    masks = np.random.default_rng(0).random((6, 3, 2)) < 0.5
    np.save(tmp_path / "masks.npy", masks)
    chosen = np.array([5, 0, 3])
    assert np.array_equal(read_masks(tmp_path / "masks.npy", rows=6, size=(3, 2), chosen=chosen), masks[[5, 0, 3]])
    np.save(tmp_path / "masks.npy", masks[:3])
    sentence = r"3 masks for 6 images \(3 of them trained on\): give one for each of the 6, in the order of the images"
    with pytest.raises(UserError, match=sentence):
        read_masks(tmp_path / "masks.npy", rows=6, size=(3, 2), chosen=chosen)


def test_of_several_arrays_the_one_called_masks_is_read(tmp_path: Path) -> None:
    masks = np.ones((2, 3, 3), dtype=np.bool_)
    np.savez(tmp_path / "a.npz", ids=np.arange(2), masks=masks)
    assert np.array_equal(read_masks(tmp_path / "a.npz", rows=2, size=(3, 3)), masks)
    np.savez(tmp_path / "b.npz", ids=np.arange(2), other=masks)
    with pytest.raises(UserError, match="none of its 2 arrays is named 'masks'"):
        read_masks(tmp_path / "b.npz", rows=2, size=(3, 3))


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (np.zeros((4, 3, 2)), "bool or uint8, .* got float64"),
        (np.zeros((4, 2, 3), dtype=np.bool_), r"shape \(4, 2, 3\) .* = \(4, 3, 2\)"),
        (np.zeros((5, 3, 2), dtype=np.bool_), "5 masks for 4 training rows"),
        (np.arange(24, dtype=np.uint8).reshape(4, 3, 2), "nothing between, got 0, 1, 2, 3, …"),
        (np.array([{"a": 1}]), "cannot be read as an array of numbers"),
    ],
)
def test_a_file_of_other_masks_is_refused(tmp_path: Path, masks: np.ndarray, message: str) -> None:
    path = tmp_path / "masks.npy"
    np.save(path, masks, allow_pickle=True)
    with pytest.raises(UserError, match=message) as caught:
        read_masks(path, rows=4, size=(3, 2))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["masks.npy", "masks.npz"])
def test_a_file_that_is_missing_or_damaged_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(UserError, match="does not exist"):
        read_masks(path, rows=1, size=(2, 2))
    for content in (b"", b"no array", b"PK\x03\x04 cut off", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="cannot be read as an array of numbers"):
            read_masks(path, rows=1, size=(2, 2))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a \.npy or \.npz file"):
        read_masks(tmp_path / "masks.png", rows=1, size=(2, 2))


def draw_images(*shape: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def masks_of(standardizer: Standardizer, rows: Rows, **options: Any) -> npt.NDArray[np.bool_]:
    site = make_site(Settings(), standardizer, rows, nn.Identity())
    found: npt.NDArray[np.bool_] = BackgroundNoise.build(site, **options).masks.numpy()
    return found


def as_bytes(x: npt.NDArray[Any], start: int = 0, stop: int = 30) -> npt.NDArray[np.uint8]:
    """Standardise images as training does, and take them back."""
    standardizer = Standardizer.fit(x, scaling="channels")
    site = make_site(Settings(), standardizer, make_rows(x, standardizer), nn.Identity())
    return bytes_of(site.rows, *site.pixel_units("a test"), start, stop)


@pytest.mark.parametrize("shape", [(8, 6), (8, 6, 1), (8, 6, 3), (3, 8, 6), (8, 6, 12)])
def test_the_bytes_of_images_come_back_from_standardised_rows(shape: tuple[int, ...]) -> None:
    x = draw_images(30, *shape)
    x[:, :2] = 9  # parts that never vary keep their value too
    layout = Standardizer.fit(x, scaling="channels").layout
    np.testing.assert_array_equal(as_bytes(x, 3, 17), np.moveaxis(to_image_layout(x, layout), 1, -1)[3:17])


@pytest.mark.parametrize("dtype", ["float64", "uint16", "int64"])
def test_other_numbers_become_the_bytes_of_the_same_gray(dtype: str) -> None:
    bytes_ = draw_images(30, 8, 6)
    factors = {"float64": 1 / 255, "uint16": 257, "int64": 1}
    x = bytes_.astype(dtype) * np.array(factors[dtype], dtype)
    np.testing.assert_array_equal(as_bytes(x)[..., 0], bytes_)


def test_masks_of_a_user_are_read_as_they_are(tmp_path: Path) -> None:
    x = draw_images(10, 8, 6)
    masks = np.random.default_rng(1).random((10, 8, 6)) < 0.5
    np.savez(tmp_path / "m.npz", masks=255 * masks.astype(np.uint8))
    standardizer = Standardizer.fit(x, scaling="channels")
    np.testing.assert_array_equal(masks_of(standardizer, make_rows(x, standardizer), masks=tmp_path / "m.npz"), masks)


def test_masks_of_a_user_are_those_of_the_images_that_are_trained_on(tmp_path: Path) -> None:
    x = draw_images(10, 8, 6)
    masks = np.random.default_rng(1).random((10, 8, 6)) < 0.5
    np.save(tmp_path / "m.npy", masks)
    part = Part(x).take(np.array([7, 0, 1, 9])).take(np.array([2, 0, 3]))
    standardizer = Standardizer.fit(part.x, scaling="channels")
    rows = make_rows(part.x, standardizer, origin=part.origin)
    found = masks_of(standardizer, rows, masks=tmp_path / "m.npy")
    np.testing.assert_array_equal(found, masks[[1, 7, 9]])


def test_a_background_needs_images_and_one_source_of_masks(tmp_path: Path) -> None:
    digits = np.random.default_rng(0).normal(size=(10, 64))
    vectors = Standardizer.fit(digits)
    with pytest.raises(UserError, match=r"'background' is for images: these samples have shape \(64,\)"):
        masks_of(vectors, make_rows(digits, vectors), masks=tmp_path / "m.npy")
    x = draw_images(10, 8, 6)
    standardizer = Standardizer.fit(x, scaling="channels")
    rows = make_rows(x, standardizer)
    with pytest.raises(UserError, match="neither masks nor weights: name a file of masks, or one with the weights"):
        masks_of(standardizer, rows)
    with pytest.raises(UserError, match="was given masks and weights"):
        masks_of(standardizer, rows, masks=tmp_path / "m.npy", weights=tmp_path / "w.pth")
    with pytest.raises(UserError, match=r"m\.npy does not exist"):
        masks_of(standardizer, rows, masks=tmp_path / "m.npy")


def test_the_command_of_the_docs_trains_noise_on_the_background_alone() -> None:
    page = (Path(__file__).parents[2] / "docs" / "images.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^pinoise train .*name: background.*$", page, re.MULTILINE)
    words = shlex.split(line)
    given = [parse_assignment(after) for word, after in pairwise(words) if word == "--set"]
    settings = parse_settings(override({"encoder": words[words.index("--encoder") + 1]}, given))
    assert [choice.part for choice in settings.views.augmentations] == [BackgroundNoise]
    assert settings.views.noise.part is None
    assert not settings.is_learned
