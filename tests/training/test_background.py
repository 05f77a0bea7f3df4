from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from torch import nn

from pinoise.data.dataset import Part
from pinoise.data.layout import to_image_layout
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.training.build import TrainingImages, build_model, make_site
from pinoise.training.config import Settings, override, parse_assignment, parse_settings
from pinoise.views import BackgroundNoise, SamSize, background_masks, load_sam, mask_cache, segment

pytest.importorskip("kornia")


@pytest.fixture
def sam(sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights of the tiny model, which stands in the place of the smallest published one."""
    monkeypatch.setitem(segment._SIZES, "vit_b", tiny_sam)
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))
    return sam_weights


def draw_images(*shape: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def masks_of(
    standardizer: Standardizer, rows: Rows, *, progress: bool = False, **options: Any
) -> npt.NDArray[np.bool_]:
    site = make_site(Settings(), standardizer, rows, nn.Identity(), progress=progress)
    found: npt.NDArray[np.bool_] = BackgroundNoise.build(site, **options).masks.numpy()
    return found


def with_background(weights: Path, *, where: str) -> Settings:
    section: Any = {"name": "background", "weights": str(weights)}
    views = {"noise": section} if where == "noise" else {"augmentations": ["crop", section]}
    return parse_settings({"encoder": {"name": "resnet18", "width": 4}, "views": views, "training": {"device": "cpu"}})


@pytest.mark.parametrize("shape", [(8, 6), (8, 6, 1), (8, 6, 3), (3, 8, 6), (8, 6, 12)])
def test_the_bytes_of_images_come_back_from_standardised_rows(shape: tuple[int, ...]) -> None:
    x = draw_images(30, *shape)
    x[:, :2] = 9  # parts that never vary keep their value too
    standardizer = Standardizer.fit(x, scaling="channels")
    pixels = TrainingImages(make_rows(x, standardizer), standardizer)
    last = np.moveaxis(to_image_layout(x, standardizer.layout), 1, -1)
    assert (len(pixels), pixels.shape, pixels.ndim) == (30, last.shape, 4)
    assert pixels.dtype == np.uint8
    for part in (slice(None), slice(3, 17), slice(25, 99), slice(30, 40)):
        found = pixels[part]
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, last[part])


@pytest.mark.parametrize("dtype", ["float64", "uint16", "int64"])
def test_other_numbers_become_the_bytes_of_the_same_gray(dtype: str) -> None:
    bytes_ = draw_images(30, 8, 6)
    factors = {"float64": 1 / 255, "uint16": 257, "int64": 1}
    x = bytes_.astype(dtype) * np.array(factors[dtype], dtype)
    standardizer = Standardizer.fit(x, scaling="channels")
    np.testing.assert_array_equal(TrainingImages(make_rows(x, standardizer), standardizer)[:][..., 0], bytes_)


@pytest.mark.parametrize("where", ["noise", "augmentations"])
def test_a_model_finds_the_masks_once_and_before_training(
    sam: Path, tiny_sam: SamSize, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = draw_images(10, 8, 6, 3)
    settings = with_background(sam, where=where)
    standardizer = Standardizer.fit(x, scaling="channels")
    rows = make_rows(x, standardizer)
    build_model(settings, standardizer, rows)

    expected = background_masks(x, load_sam(sam, model=tiny_sam))
    assert 0 < expected.mean() < 1

    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("the model was loaded again")

    monkeypatch.setattr(mask_cache, "load_sam", refuse)
    np.testing.assert_array_equal(masks_of(standardizer, rows, weights=sam), expected)
    other = make_rows(255 - x, standardizer)
    with pytest.raises(AssertionError, match="loaded again"):
        masks_of(standardizer, other, weights=sam)


def test_progress_is_shown_when_asked_for(sam: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = draw_images(10, 8, 6, 3)
    standardizer = Standardizer.fit(x, scaling="channels")
    masks_of(standardizer, make_rows(x, standardizer), weights=sam, progress=True)
    assert "finding the background:   0%|          | 0/10" in capsys.readouterr().err


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


def test_a_background_needs_images_and_one_source_of_masks(digits: np.ndarray, tmp_path: Path) -> None:
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
