from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.torch
import torch
import torch.nn.functional as F

from pinoise.errors import UserError
from pinoise.views import SAM_MODELS, SamSize, background_masks, load_sam, segment
from pinoise.views.segment import border_points, build_sam

pytest.importorskip("kornia")


def draw_images(*shape: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def slow_background(image: npt.NDArray[np.uint8], sam: Any) -> npt.NDArray[np.bool_]:
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
    mask: npt.NDArray[np.bool_] = found.numpy()
    return mask


@pytest.mark.parametrize("shape", [(8, 8), (20, 12), (9, 40)])
def test_the_background_is_the_best_of_the_masks_that_the_border_gets(
    sam_weights: Path, tiny_sam: SamSize, shape: tuple[int, int]
) -> None:
    sam = load_sam(sam_weights, model=tiny_sam)
    images = draw_images(6, *shape, 3)
    masks = background_masks(images, sam)
    assert masks.shape == (6, *shape)
    assert masks.dtype == np.bool_
    for image, mask in zip(images, masks, strict=True):
        assert np.array_equal(mask, slow_background(image, sam))
    assert 0 < masks.mean() < 1


def test_masks_are_the_same_every_time_and_for_every_batch_size(sam_weights: Path, tiny_sam: SamSize) -> None:
    images = draw_images(5, 8, 8, 3)
    first = background_masks(images, load_sam(sam_weights, model=tiny_sam), batch=2)
    assert np.array_equal(first, background_masks(images, load_sam(sam_weights, model=tiny_sam), batch=5))
    assert len({mask.tobytes() for mask in first}) > 1


def test_grey_images_are_those_with_three_equal_channels(sam_weights: Path, tiny_sam: SamSize) -> None:
    sam = load_sam(sam_weights, model=tiny_sam)
    grey = draw_images(3, 8, 8)
    masks = background_masks(grey, sam)
    assert np.array_equal(masks, background_masks(grey[..., None], sam))
    assert np.array_equal(masks, background_masks(np.repeat(grey[..., None], 3, axis=3), sam))


def test_progress_is_told_after_every_batch(sam_weights: Path, tiny_sam: SamSize) -> None:
    told: list[tuple[int, int]] = []
    sam = load_sam(sam_weights, model=tiny_sam)
    background_masks(draw_images(5, 8, 8), sam, batch=2, progress=lambda *counts: told.append(counts))
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_the_points_are_the_corners_and_the_middles_of_the_edges() -> None:
    points = border_points(32, 32, (1024, 1024))
    assert sorted(points.tolist()) == sorted(
        [x, y] for x in (15.5, 511.5, 1007.5) for y in (15.5, 511.5, 1007.5) if (x, y) != (511.5, 511.5)
    )


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 8, 8), dtype=np.float32), "must be uint8, got float32"),
        (np.zeros((2, 64), dtype=np.uint8), r"shape \(n, height, width\) .* got \(2, 64\)"),
        (np.zeros((0, 8, 8), dtype=np.uint8), r"got \(0, 8, 8\)"),
        (np.zeros((2, 8, 8, 4), dtype=np.uint8), "1 or 3 channels, got 4"),
    ],
)
def test_images_that_sam_does_not_take_are_refused(
    sam_weights: Path, tiny_sam: SamSize, images: Any, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        background_masks(images, load_sam(sam_weights, model=tiny_sam))


def test_weights_are_loaded_whole_and_ready_without_touching_the_seed(
    sam_weights: Path, tiny_sam: SamSize, tmp_path: Path
) -> None:
    stored = torch.load(sam_weights, weights_only=True)
    safetensors.torch.save_file(stored, tmp_path / "sam.safetensors")
    state = torch.get_rng_state()
    for path in (sam_weights, tmp_path / "sam.safetensors"):
        sam = load_sam(path, model=tiny_sam)
        assert not sam.training
        assert not any(parameter.requires_grad for parameter in sam.parameters())
        loaded = sam.state_dict()
        assert set(loaded) == set(stored)
        assert all(torch.equal(loaded[name], tensor) for name, tensor in stored.items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", [name for name in SAM_MODELS if name.startswith("vit")])
def test_a_published_model_has_the_names_and_shapes_that_kornia_loads_published_weights_into(name: str) -> None:
    from kornia.models.sam.model import Sam

    with torch.device("meta"):
        ours, theirs = build_sam(name).state_dict(), Sam.from_name(name).state_dict()
    assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}


def test_mobile_sam_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mobile_sam.pt"
    torch.save(build_sam("mobile_sam").state_dict(), path)
    state = torch.get_rng_state()
    sam = load_sam(path, model="mobile_sam")
    assert torch.equal(torch.get_rng_state(), state)
    assert sam.image_encoder.img_size == 1024
    assert background_masks(draw_images(1, 8, 8, 3), sam).shape == (1, 8, 8)


def test_weights_of_another_size_are_refused_and_the_right_one_named(
    sam_weights: Path, tiny_sam: SamSize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(segment._SIZES, "vit_b", tiny_sam._replace(width=8))
    monkeypatch.setitem(segment._SIZES, "vit_l", tiny_sam._replace(depth=3))
    monkeypatch.setitem(segment._SIZES, "vit_h", tiny_sam)
    with pytest.raises(UserError, match=r"sam\.pth .* SAM 'vit_b' \(image_encoder.pos_embed has shape .*'vit_h'"):
        load_sam(sam_weights, model="vit_b")
    with pytest.raises(UserError, match=r"SAM 'vit_l' \(image_encoder.blocks.2.* is missing\).*'vit_h'"):
        load_sam(sam_weights, model="vit_l")
    with pytest.raises(UserError, match=r"is not part of it\).*'vit_h'"):
        load_sam(sam_weights, model=tiny_sam._replace(depth=1))
    load_sam(sam_weights, model="vit_h")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gone.pth", "does not exist"),
        ("page.pth", "is damaged or holds no weights"),
        ("list.pth", "holds list, not a plain mapping of names to tensors"),
    ],
)
def test_a_file_that_is_no_weights_is_refused(tmp_path: Path, tiny_sam: SamSize, name: str, found: str) -> None:
    (tmp_path / "page.pth").write_text("<html>not found</html>")
    torch.save([torch.zeros(2)], tmp_path / "list.pth")
    with pytest.raises(UserError, match=f"{name} {found}: give SAM's checkpoint as it was published"):
        load_sam(tmp_path / name, model=tiny_sam)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "linear.pth")
    with pytest.raises(UserError, match=r"is missing.*give a checkpoint of Segment Anything"):
        load_sam(tmp_path / "linear.pth")


def test_an_unknown_model_and_an_uneven_patch_are_refused(sam_weights: Path, tiny_sam: SamSize) -> None:
    with pytest.raises(UserError, match="unknown SAM model 'vit_c'"):
        load_sam(sam_weights, model="vit_c")
    with pytest.raises(UserError, match="a patch of 5 does not divide SAM's image size of 32"):
        load_sam(sam_weights, model=tiny_sam._replace(patch=5))


def test_without_kornia_the_extra_is_named(
    sam_weights: Path, tiny_sam: SamSize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kornia.models.sam.model", None)
    with pytest.raises(UserError, match=r"pip install 'pinoise\[vision\]'"):
        load_sam(sam_weights, model=tiny_sam)
