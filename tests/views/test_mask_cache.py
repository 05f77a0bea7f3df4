from __future__ import annotations

import hashlib
import json
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
    stored, described = sorted(folder.iterdir(), key=lambda path: path.suffix, reverse=True)
    known = json.loads(described.read_text())
    assert stored.suffix == ".npy"
    assert known["weights"] == hashlib.sha256(sam_weights.read_bytes()).hexdigest()
    assert known["masks"] == hashlib.sha256(stored.read_bytes()).hexdigest()
    assert known["model"]["width"] == tiny_sam.width


def test_other_images_weights_or_models_have_masks_of_their_own(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path
) -> None:
    folder = tmp_path / "masks"
    cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    other = images.copy()
    other[9, 7, 5, 2] ^= 1
    cached_masks(other, sam_weights, folder=folder, model=tiny_sam)
    assert len(list(folder.glob("*.npy"))) == 2
    cached_masks(images.reshape(10, 6, 8, 3), sam_weights, folder=folder, model=tiny_sam)
    assert len(list(folder.glob("*.npy"))) == 3
    tensors = torch.load(sam_weights, weights_only=True)
    torch.save({name: 2 * tensor for name, tensor in tensors.items()}, sam_weights)
    cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    assert len(list(folder.glob("*.npy"))) == 4
    cached_masks(images, sam_weights, folder=folder, model=tiny_sam._replace(decoder_heads=4))
    assert len(list(folder.glob("*.npy"))) == 5
    assert len(list(folder.glob("*.json"))) == 5
    assert len(list(folder.iterdir())) == 10


def test_interrupted_work_goes_on_after_its_last_block(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "masks"

    def interrupt(done: int, total: int) -> None:
        if done > 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_masks(images, sam_weights, folder=folder, model=tiny_sam, progress=interrupt, batch=2)
    assert not list(folder.glob("*.npy"))
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
    assert told == [(4, 10), (8, 10), (9, 10), (10, 10)]
    assert np.array_equal(masks, background_masks(images, load_sam(sam_weights, model=tiny_sam)))
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".npy"]


@pytest.mark.parametrize("damage", ["flipped", "cut", "description"])
def test_damaged_masks_are_computed_again(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "masks"
    masks = np.array(cached_masks(images, sam_weights, folder=folder, model=tiny_sam))
    (stored,), (described,) = folder.glob("*.npy"), folder.glob("*.json")
    content = bytearray(stored.read_bytes())
    if damage == "flipped":
        content[-1] ^= 1
        stored.write_bytes(content)
    elif damage == "cut":
        stored.write_bytes(content[:-5])
    else:
        described.write_text("{")
    assert np.array_equal(cached_masks(images, sam_weights, folder=folder, model=tiny_sam), masks)
    assert stored.read_bytes()[-1] == int(masks[-1, -1, -1])


def test_a_damaged_block_is_computed_again(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "masks"
    with monkeypatch.context() as patch:
        patch.setattr(mask_cache, "_join", refuse)
        with pytest.raises(AssertionError):
            cached_masks(images, sam_weights, folder=folder, model=tiny_sam)
    (blocks,) = folder.iterdir()
    (blocks / "0.npy").write_bytes(b"cut off")
    np.save(blocks / "4.npy", np.zeros((3, 8, 6), dtype=np.bool_))
    expected = background_masks(images, load_sam(sam_weights, model=tiny_sam))
    assert np.array_equal(cached_masks(images, sam_weights, folder=folder, model=tiny_sam), expected)


def test_what_is_missing_or_cannot_be_written_is_one_sentence(
    images: npt.NDArray[np.uint8], sam_weights: Path, tiny_sam: SamSize, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"none\.pth does not exist"):
        cached_masks(images, tmp_path / "none.pth", folder=tmp_path, model=tiny_sam)
    with pytest.raises(UserError, match="cannot be read as SAM's weights"):
        cached_masks(images, tmp_path, folder=tmp_path, model=tiny_sam)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot keep masks in .*file"):
        cached_masks(images, sam_weights, folder=tmp_path / "file", model=tiny_sam)
    with pytest.raises(UserError, match="must be uint8"):
        cached_masks(images.astype(np.int64), sam_weights, folder=tmp_path, model=tiny_sam)
    with pytest.raises(UserError, match="unknown SAM model"):
        cached_masks(images, sam_weights, folder=tmp_path, model="vit_x")
