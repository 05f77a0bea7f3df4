"""Masks of the background that a Segment-Anything model finds, and how they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.nn.functional as F

from pinoise.errors import UserError
from pinoise.paper.reproduce.masks import TINY_SAM
from pinoise.paper.sam import Images, Masks, background_masks, build_sam, kept_masks, load_sam

pytest.importorskip("kornia")


def draw_images(*shape: int) -> Images:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def slow_background(image: Images, sam: Any) -> Masks:
    """One image, one prompt at a time, with kornia's own way back to the size of the image."""
    from kornia.models.structures import SegmentationResults

    height, width = image.shape[:2]
    longest = max(height, width)
    inner = (round(32 * height / longest), round(32 * width / longest))
    x = torch.from_numpy(image).permute(2, 0, 1)[None].float()
    x = F.interpolate(x, inner, mode="bilinear", antialias=True)
    x = (x - torch.tensor([123.675, 116.28, 103.53])[:, None, None]) / torch.tensor([58.395, 57.12, 57.375])[
        :, None, None
    ]
    padded = torch.zeros(1, 3, 32, 32)
    padded[:, :, : inner[0], : inner[1]] = x
    best, found = -np.inf, None
    with torch.no_grad():
        embedding = sam.image_encoder(padded)
        for row in (0, (height - 1) / 2, height - 1):
            for column in (0, (width - 1) / 2, width - 1):
                if (row, column) == ((height - 1) / 2, (width - 1) / 2):
                    continue
                point = [(column + 0.5) * inner[1] / width - 0.5, (row + 0.5) * inner[0] / height - 0.5]
                sparse, dense = sam.prompt_encoder(
                    points=(torch.tensor([[point]]), torch.ones(1, 1)), boxes=None, masks=None
                )
                logits, scores = sam.mask_decoder(
                    image_embeddings=embedding,
                    image_pe=sam.prompt_encoder.get_dense_pe(),
                    sparse_prompt_embeddings=sparse,
                    dense_prompt_embeddings=dense,
                    multimask_output=True,
                )
                for number in range(3):
                    if float(scores[0, number]) > best:
                        best = float(scores[0, number])
                        result = SegmentationResults(logits[:, number : number + 1], scores)
                        found = result.original_res_logits(inner, (height, width), (32, 32))[0, 0] > 0
    assert found is not None
    mask: Masks = found.numpy()
    return mask


@pytest.mark.parametrize("shape", [(8, 8), (20, 12), (9, 40)])
def test_the_background_is_the_best_of_the_masks_that_the_border_gets(
    sam_weights: Path, shape: tuple[int, int]
) -> None:
    sam = load_sam(sam_weights, model=TINY_SAM)
    images = draw_images(6, *shape, 3)
    masks = background_masks(images, sam)
    assert masks.shape == (6, *shape)
    assert masks.dtype == np.bool_
    for image, mask in zip(images, masks, strict=True):
        assert np.array_equal(mask, slow_background(image, sam))
    assert 0 < masks.mean() < 1


def test_a_grey_image_is_one_with_three_equal_channels(sam_weights: Path) -> None:
    sam = load_sam(sam_weights, model=TINY_SAM)
    grey = draw_images(3, 8, 8, 1)
    assert np.array_equal(background_masks(grey, sam), background_masks(np.repeat(grey, 3, axis=3), sam))
    with pytest.raises(UserError, match="1 or 3 channels, got 4"):
        background_masks(np.repeat(grey, 4, axis=3), sam)


def test_weights_are_loaded_whole_and_ready_without_touching_the_seed(sam_weights: Path, tmp_path: Path) -> None:
    stored = torch.load(sam_weights, weights_only=True)
    safetensors.torch.save_file(stored, tmp_path / "sam.safetensors")
    state = torch.get_rng_state()
    for path in (sam_weights, tmp_path / "sam.safetensors"):
        sam = load_sam(path, model=TINY_SAM)
        assert not sam.training
        assert not any(parameter.requires_grad for parameter in sam.parameters())
        loaded = sam.state_dict()
        assert set(loaded) == set(stored)
        assert all(torch.equal(loaded[name], tensor) for name, tensor in stored.items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.slow
def test_a_published_model_is_loaded_by_its_name_and_named_where_another_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "mobile_sam.pt"
    torch.save(build_sam("mobile_sam").state_dict(), path)
    sam = load_sam(path, model="mobile_sam")
    assert sam.image_encoder.img_size == 1024
    assert background_masks(draw_images(1, 8, 8, 3), sam).shape == (1, 8, 8)
    with pytest.raises(UserError, match=r"mobile_sam\.pt .* SAM 'vit_b' \(.*\): choose the model 'mobile_sam'"):
        load_sam(path)


def test_what_is_no_checkpoint_of_sam_is_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "linear.pth")
    with pytest.raises(UserError, match=r"is missing.*give a checkpoint of Segment Anything"):
        load_sam(tmp_path / "linear.pth")
    with pytest.raises(UserError, match="does not exist: give SAM's checkpoint as it was published"):
        load_sam(tmp_path / "gone.pth")
    with pytest.raises(UserError, match="unknown SAM model 'vit_c'"):
        load_sam(tmp_path / "linear.pth", model="vit_c")  # type: ignore[arg-type]


def masks_of(images: Images, weights: Path, folder: Path, *, model: Any = TINY_SAM) -> Masks:
    return kept_masks(lambda start, stop: images[start:stop], 10, weights, model=model, folder=folder, block=4)


def blocks(folder: Path) -> dict[Path, int]:
    """The blocks of masks that are kept, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("*/masks.npy")}


def test_masks_are_found_once_for_the_same_images_weights_and_model(sam_weights: Path, tmp_path: Path) -> None:
    images, folder = draw_images(10, 8, 6, 3), tmp_path / "new" / "masks"
    first = masks_of(images, sam_weights, folder)
    assert np.array_equal(first, background_masks(images, load_sam(sam_weights, model=TINY_SAM)))
    assert 0 < first.mean() < 1
    before = blocks(folder)
    assert len(before) == 3
    assert np.array_equal(masks_of(images, sam_weights, folder), first)
    assert blocks(folder) == before
    images[9, 7, 5, 2] ^= 1
    masks_of(images, sam_weights, folder)
    assert len(blocks(folder)) == 4  # the other blocks hold the same images
    masks_of(images, sam_weights, folder, model=TINY_SAM._replace(decoder_heads=4))
    assert len(blocks(folder)) == 7
    tensors = torch.load(sam_weights, weights_only=True)
    torch.save({name: 2 * tensor for name, tensor in tensors.items()}, sam_weights)
    masks_of(images, sam_weights, folder)
    assert len(blocks(folder)) == 10


def test_interrupted_work_goes_on_after_its_last_block(sam_weights: Path, tmp_path: Path) -> None:
    images, asked = draw_images(10, 8, 6, 3), list[int]()

    def interrupted(start: int, stop: int) -> Images:
        asked.append(start)
        if start == 8:
            raise KeyboardInterrupt
        return images[start:stop]

    with pytest.raises(KeyboardInterrupt):
        kept_masks(interrupted, 10, sam_weights, model=TINY_SAM, folder=tmp_path / "masks", block=4)
    assert asked == [0, 4, 8]
    before = blocks(tmp_path / "masks")
    assert len(before) == 2
    masks_of(images, sam_weights, tmp_path / "masks")
    assert before.items() < blocks(tmp_path / "masks").items()


def test_weights_that_are_not_there_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.pth does not exist: give the file of SAM's weights"):
        masks_of(draw_images(10, 8, 6, 3), tmp_path / "none.pth", tmp_path)
    with pytest.raises(UserError, match="cannot be read as SAM's weights"):
        masks_of(draw_images(10, 8, 6, 3), tmp_path, tmp_path)
