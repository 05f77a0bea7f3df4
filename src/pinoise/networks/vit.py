"""A vision transformer (Dosovitskiy et al., 2021) made of kornia's blocks, for images of any size."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.choices import Layers, Size
from pinoise.errors import UserError, needing
from pinoise.networks.mlp import check_sizes
from pinoise.networks.resnet import check_images, image_shape

INITIAL_DEVIATION = 0.02


class PatchEmbedding(nn.Module):
    """A class token and one token per patch, each with a learned position. Other grids get interpolated positions.

    Args:
        channels: channels of the images.
        grid: rows and columns of patches that have a learned position.
        patch: side of a patch in pixels.
        dim: size of a token.
    """

    def __init__(self, channels: int, grid: tuple[int, int], *, patch: int, dim: int) -> None:
        super().__init__()
        self.grid = grid
        self.backbone = nn.Conv2d(channels, dim, patch, stride=patch)
        self.cls_token = nn.Parameter(torch.empty(1, 1, dim))
        self.positions = nn.Parameter(torch.empty(1 + grid[0] * grid[1], dim))
        nn.init.normal_(self.cls_token, std=INITIAL_DEVIATION)
        nn.init.normal_(self.positions, std=INITIAL_DEVIATION)

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens (m, 1 + h * w, dim) of images of h × w patches, the class token first."""
        patches = self.backbone(x)  # (m, dim, h, w)
        h, w = patches.shape[2:]
        tokens = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
        return tokens + self.positions_of(h, w)

    def positions_of(self, height: int, width: int) -> Tensor:
        """Return the positions (1 + height * width, dim) of a grid, interpolated if it is not ``self.grid``."""
        if (height, width) == self.grid:
            return self.positions
        own = self.positions[1:].T.unflatten(1, self.grid)[None]  # (1, dim, *grid)
        # Bilinear, because the gradient of anything smoother cannot be made deterministic on a GPU.
        stretched = F.interpolate(own, size=(height, width), mode="bilinear", align_corners=False)
        return torch.cat([self.positions[:1], stretched[0].flatten(1).T])


class ViT(nn.Module):
    """A vision transformer whose representation is its class token. Weights of kornia's own class fit by name.

    kornia's class takes square images of one size. It also keeps every block's output, which takes memory and prevents
    copies. Here images of other sizes get interpolated positions, as the small crops of DINO need, and no output is
    kept.

    Args:
        shape: the shape of one image, (C, H, W).
        patch: side of a patch in pixels; it must divide H and W.
        dim: size of a token.
        depth: number of blocks.
        heads: number of attention heads; it must divide ``dim``.

    >>> network = ViT((3, 8, 8), patch=4, dim=12, depth=1, heads=3)
    >>> network(torch.zeros(2, 3, 8, 8)).shape, network.maps(torch.zeros(2, 3, 16, 4)).shape
    (torch.Size([2, 12]), torch.Size([2, 12, 4, 1]))
    """

    for_images: ClassVar[bool] = True

    def __init__(
        self, shape: tuple[int, ...], *, patch: Size = 4, dim: Size = 192, depth: Layers = 6, heads: Size = 3
    ) -> None:
        super().__init__()
        self.channels, height, width = image_shape(shape, owner="a ViT")
        check_sizes("a ViT", patch=patch, dim=dim, depth=depth, heads=heads)
        if height % patch or width % patch:
            allowed = [size for size in range(1, min(height, width) + 1) if height % size == width % size == 0]
            raise UserError(
                f"patch={patch} does not divide images of {height}×{width} pixels: "
                f"allowed are {', '.join(map(str, allowed))}."
            )
        if dim % heads:
            allowed = [size for size in range(1, dim + 1) if dim % size == 0]
            raise UserError(f"heads={heads} does not divide dim={dim}: allowed are {', '.join(map(str, allowed))}.")
        with needing("vision", what="encoder 'vit'"):
            from kornia.models.vit import TransformerEncoder
        self.patch = patch
        self.patch_embedding = PatchEmbedding(self.channels, (height // patch, width // patch), patch=patch, dim=dim)
        self.encoder = TransformerEncoder(dim, depth, heads)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.out_features = dim
        self.map_channels = dim

    def forward(self, x: Tensor) -> Tensor:
        """Return the class token (m, dim) of images (m, C, h, w)."""
        return self._tokens(x)[:, 0]

    def maps(self, x: Tensor) -> Tensor:
        """Return the tokens of the patches on their grid, (m, dim, h / patch, w / patch)."""
        patches = self._tokens(x)[:, 1:]
        return patches.transpose(1, 2).reshape(x.shape[0], -1, x.shape[2] // self.patch, x.shape[3] // self.patch)

    def _tokens(self, x: Tensor) -> Tensor:
        check_images(x, self.channels, owner="a ViT")
        height, width = x.shape[2:]
        if height % self.patch or width % self.patch:
            raise UserError(
                f"images of {height}×{width} pixels cannot be cut into patches of {self.patch}×{self.patch}: "
                f"both sides must be multiples of {self.patch}."
            )
        # Call the blocks, not the encoder: the encoder would keep every block's output.
        tokens: Tensor = self.norm(self.encoder.blocks(self.patch_embedding(x)))  # (m, 1 + patches, dim)
        return tokens
