from __future__ import annotations

import copy
import sys

import pytest
import torch
from torch import Tensor

from pinoise.errors import UserError
from pinoise.networks import ViT

kornia_vit = pytest.importorskip("kornia.models.vit", reason="needs the extra 'vision'")


def small(shape: tuple[int, int, int] = (3, 16, 16)) -> ViT:
    return ViT(shape, patch=4, dim=12, depth=2, heads=3)


def slow_interpolation(grid: Tensor, height: int, width: int) -> Tensor:
    """Bilinear interpolation of (h, w, dim) between the centres of cells, one new cell at a time."""
    h, w, _ = grid.shape
    rows = []
    for i in range(height):
        y = min(max((i + 0.5) * h / height - 0.5, 0.0), h - 1)
        for j in range(width):
            x = min(max((j + 0.5) * w / width - 0.5, 0.0), w - 1)
            top, left = int(y), int(x)
            bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
            above = (1 - (x - left)) * grid[top, left] + (x - left) * grid[top, right]
            below = (1 - (x - left)) * grid[bottom, left] + (x - left) * grid[bottom, right]
            rows.append((1 - (y - top)) * above + (y - top) * below)
    return torch.stack(rows)


def test_its_weights_load_by_name_and_give_the_same_tokens() -> None:
    theirs = kornia_vit.VisionTransformer(image_size=16, patch_size=4, embed_dim=12, depth=2, num_heads=3)
    ours = small()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 16, 16)
    tokens = theirs(x)  # (2, 1 + 16, 12)
    torch.testing.assert_close(ours(x), tokens[:, 0])
    maps = ours.maps(x)
    assert maps.shape == (2, 12, 4, 4)
    for row in range(4):
        for column in range(4):
            torch.testing.assert_close(maps[:, :, row, column], tokens[:, 1 + 4 * row + column])


@pytest.mark.parametrize("grid", [(2, 2), (3, 7), (8, 8), (1, 4)])
def test_positions_of_other_grids_lie_between_the_own_ones(grid: tuple[int, int]) -> None:
    embedding = small((3, 16, 20)).patch_embedding
    found = embedding.positions_of(*grid)
    torch.testing.assert_close(found[0], embedding.positions[0])
    own = embedding.positions[1:].reshape(4, 5, 12)
    torch.testing.assert_close(found[1:], slow_interpolation(own, *grid))


@pytest.mark.parametrize("size", [(8, 8), (16, 8), (32, 20)])
def test_crops_and_oblong_images_go_through_the_same_network(size: tuple[int, int]) -> None:
    network = small()
    x = torch.randn(2, 3, *size)
    assert network(x).shape == (2, network.out_features)
    assert network.maps(x).shape == (2, network.map_channels, size[0] // 4, size[1] // 4)


def test_positions_and_class_token_start_small() -> None:
    embedding = ViT((3, 32, 32)).patch_embedding
    assert embedding.positions.std().item() == pytest.approx(0.02, rel=0.05)
    assert embedding.cls_token.std().item() == pytest.approx(0.02, rel=0.3)


def test_a_network_that_ran_keeps_nothing_and_can_be_copied() -> None:
    network = small()
    x = torch.randn(2, 3, 16, 16)
    network(x).sum().backward()
    assert all(not part.results for part in network.modules() if hasattr(part, "results"))
    assert torch.equal(copy.deepcopy(network)(x), network(x))


def test_a_patch_that_does_not_divide_the_image_is_refused_with_those_that_do() -> None:
    message = r"patch=5 does not divide images of 32×24 pixels: allowed are 1, 2, 4, 8\.$"
    with pytest.raises(UserError, match=message):
        ViT((3, 32, 24), patch=5)
    with pytest.raises(UserError, match=r"patch of a ViT is 0: it must be from 1 to 65536"):
        ViT((3, 32, 24), patch=0)
    with pytest.raises(UserError, match=r"images of 10×16 pixels .* 4×4: both sides must be multiples of 4\.$"):
        small()(torch.zeros(2, 3, 10, 16))


def test_heads_that_do_not_divide_the_tokens_are_refused_with_those_that_do() -> None:
    with pytest.raises(UserError, match=r"heads=5 does not divide dim=12: allowed are 1, 2, 3, 4, 6, 12\.$"):
        ViT((3, 16, 16), dim=12, heads=5)


def test_what_is_no_image_or_of_other_channels_is_refused() -> None:
    with pytest.raises(UserError, match=r"a ViT takes images, .* one sample has shape \(16, 16\)\.$"):
        ViT((16, 16))
    with pytest.raises(UserError, match=r"a ViT was made for images of 3 channels"):
        small()(torch.zeros(2, 1, 16, 16))
    with pytest.raises(UserError, match=r"given a tensor of shape \(5,\)"):
        small().maps(torch.zeros(5))


def test_without_kornia_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kornia.models.vit", None)
    with pytest.raises(UserError, match=r"needs the extra 'vision': pip install 'pinoise\[vision\]'\.$"):
        small()
