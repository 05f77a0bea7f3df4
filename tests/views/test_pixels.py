from __future__ import annotations

import colorsys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import ks_2samp
from torch.utils._python_dispatch import TorchDispatchMode

from pinoise.views.pixels import crop, draw_boxes, shift_hue, solarise

CPU = torch.device("cpu")


class Operations(TorchDispatchMode):
    """Remembers the names of what is computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("size", [(12, 9), (5, 5), (20, 16)])
def test_a_crop_is_a_slice_that_is_resized_and_mirrored(size: tuple[int, int]) -> None:
    x = torch.rand(40, 2, 12, 9, dtype=torch.float64)
    boxes = draw_boxes(40, (12, 9), area=(0.05, 1.0), device=CPU)
    flip = torch.rand(40) < 0.5
    result = crop(x, boxes, flip, size=size)
    for image, box, mirrored, cut in zip(x, boxes.int().tolist(), flip, result, strict=True):
        top, left, height, width = box
        part = image[None, :, top : top + height, left : left + width]
        expected = F.interpolate(part, size, mode="bilinear", align_corners=False)[0]
        torch.testing.assert_close(cut, expected.flip(-1) if mirrored else expected, atol=1e-9, rtol=0)


def test_a_box_lies_in_the_image_in_whole_pixels_and_has_the_share_that_is_asked_for() -> None:
    top, left, height, width = draw_boxes(5000, (40, 50), area=(0.3, 0.5), device=CPU).unbind(1)
    for values in (top, left, height, width):
        assert torch.equal(values, values.round())
    assert bool((top >= 0).all() & (left >= 0).all())
    assert bool((top + height <= 40).all() & (left + width <= 50).all())
    share = height * width / 2000
    assert 0.28 < float(share.min()) < 0.33
    assert 0.47 < float(share.max()) < 0.53


def test_boxes_are_distributed_as_those_of_kornia() -> None:
    generator = pytest.importorskip("kornia.augmentation.random_generator").ResizedCropGenerator(
        (32, 32), scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)
    )
    corners = generator((4000, 3, 32, 32))["src"]  # (m, 4, 2), the last pixels of a box included
    theirs = corners[:, 2] - corners[:, 0] + 1  # width, height
    top, left, height, width = draw_boxes(4000, (32, 32), area=(0.08, 1.0), device=CPU).unbind(1)
    for ours, other in (
        (width, theirs[:, 0]),
        (height, theirs[:, 1]),
        (left, corners[:, 0, 0]),
        (top, corners[:, 0, 1]),
        (width / height, theirs[:, 0] / theirs[:, 1]),
    ):
        assert ks_2samp(ours.numpy(), other.numpy()).pvalue > 1e-3


@pytest.mark.parametrize(("size", "box"), [((10, 60), (10, 13)), ((60, 9), (12, 9))])
def test_an_image_that_no_box_fits_gives_its_largest_one(size: tuple[int, int], box: tuple[int, int]) -> None:
    boxes = draw_boxes(50, size, area=(1.0, 1.0), device=CPU)
    assert boxes[:, 2:].unique(dim=0).tolist() == [list(box)]
    assert len(boxes[:, :2].unique(dim=0)) > 10


def test_the_hue_is_turned_as_python_does() -> None:
    x = torch.rand(6, 3, 2, 3, dtype=torch.float64)
    x[0, :, 0, 0] = 0.4  # grey
    x[1, :, 0, 0] = torch.tensor([0.7, 0.7, 0.2])
    x[2, :, 0, 0] = torch.tensor([0.2, 0.7, 0.7])
    x[3, :, 0, 0] = torch.tensor([0.7, 0.2, 0.7])
    x[4, :, 0, 0] = 0.0
    turns = torch.tensor([0.5, -0.5, 0.1, -0.2, 0.3, 0.0], dtype=torch.float64)
    result = shift_hue(x, turns)
    for i in range(6):
        for pixel, turned in zip(x[i].flatten(1).T.tolist(), result[i].flatten(1).T.tolist(), strict=True):
            hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
            expected = colorsys.hsv_to_rgb((hue + float(turns[i])) % 1.0, saturation, value)
            assert turned == pytest.approx(expected, abs=1e-9)


def test_solarising_is_kornias_where_it_is_wanted() -> None:
    enhance = pytest.importorskip("kornia.enhance")
    x = torch.rand(4, 3, 5, 5)
    gate = torch.tensor([True, False, True, False])
    expected = torch.where(gate[:, None, None, None], enhance.solarize(x, 0.5), x)
    torch.testing.assert_close(solarise(x, gate), expected)
    assert torch.equal(solarise(x, gate)[1], x[1])
