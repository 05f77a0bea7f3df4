from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from pinoise.errors import UserError
from pinoise.views import SamSize, background_masks, cached_masks, load_sam, mask_cache

pytest.importorskip("kornia")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_cache, "_BLOCK", 4)


@pytest.fixture
def images() -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (10, 8, 6, 3), dtype=np.uint8)


def refuse(*_: object, **__: object) -> Any:
    raise AssertionError("the model was loaded again")


def test_masks_are_computed_once_and_then_read(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "masks"
    first = cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    assert np.array_equal(first, background_masks(images, load_sam(sam_weights, model=tiny_sam)))
    assert 0 < first.mean() < 1
    monkeypatch.setattr(mask_cache, "load_sam", refuse)
    second = cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    assert np.array_equal(first, second)
    assert torch.from_numpy(second).dtype == torch.bool


def test_other_images_weights_or_models_have_masks_of_their_own(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path
) -> None:
    folder = tmp_path / "masks"

    def blocks() -> int:
        return len(list(folder.glob("*/masks.npy")))

    cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    assert blocks() == 3
    other = images.copy()
    other[9, 7, 5, 2] ^= 1
    cached_masks(other, sam_weights, folder=folder, model=tiny_sam)
    assert blocks() == 4  # the others hold the same images
    cached_masks(images.reshape(10, 6, 8, 3), sam_weights, folder=folder, model=tiny_sam)
    assert blocks() == 7
    tensors = torch.load(sam_weights, weights_only=True)
    torch.save({name: 2 * tensor for name, tensor in tensors.items()}, sam_weights)
    cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    assert blocks() == 10
    cached_masks(images, sam_weights, folder=folder, model=tiny_sam._replace(decoder_heads=4))
    assert blocks() == 13


def test_interrupted_work_goes_on_after_its_last_block(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "masks"

    def interrupt(done: int, total: int) -> None:
        if done > 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_masks(images, sam_weights, folder=folder, model=tiny_sam, progress=interrupt, batch=2)
    assert len(list(folder.glob("*/masks.npy"))) == 2
    assert not list(folder.glob("*.part"))
    counted: list[int] = []

    def counting(part: npt.NDArray[np.uint8], *arguments: Any, **named: Any) -> npt.NDArray[np.bool_]:
        counted.append(len(part))
        return background_masks(part, *arguments, **named)

    monkeypatch.setattr(mask_cache, "background_masks", counting)
    told: list[tuple[int, int]] = []
    masks = cached_masks(
        images, sam_weights, folder=folder, model=tiny_sam, batch=1, progress=lambda *counts: told.append(counts)
    )
    assert counted == [2]
    assert told == [(4, 10), (8, 10), (9, 10), (10, 10), (10, 10)]
    assert np.array_equal(masks, background_masks(images, load_sam(sam_weights, model=tiny_sam)))


@pytest.mark.parametrize("file", ["masks.npy", "about.json"])
def test_masks_that_somebody_wrote_to_are_computed_again(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, file: str
) -> None:
    folder = tmp_path / "masks"
    masks = cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    for path in folder.glob(f"*/{file}"):
        path.write_bytes(path.read_bytes()[:-5])
    assert np.array_equal(cached_masks(images, sam_weights, folder=folder, model=tiny_sam), masks)


def test_what_is_missing_or_cannot_be_written_is_one_sentence(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"none\.pth does not exist"):
        cached_masks(images, tmp_path / "none.pth", folder=tmp_path, model=tiny_sam)
    with pytest.raises(UserError, match="cannot be read as SAM's weights"):
        cached_masks(images, tmp_path, folder=tmp_path, model=tiny_sam)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"file cannot be written \(.*\): make room"):
        cached_masks(images, sam_weights, folder=tmp_path / "file", model=tiny_sam)
    with pytest.raises(UserError, match="must be uint8"):
        cached_masks(images.astype(np.int64), sam_weights, folder=tmp_path, model=tiny_sam)
    with pytest.raises(UserError, match="unknown SAM model"):
        cached_masks(images, sam_weights, folder=tmp_path, model="vit_x")
