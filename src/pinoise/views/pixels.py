"""Operations on the pixels of a batch of images, with separate parameters for every image.

kornia has these, too; they are here because it takes more than twice as long on a CPU.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from pinoise.views.base import per_sample

_RATIO = (3 / 4, 4 / 3)  # width to height of a crop
_TRIES = 10  # boxes drawn for a crop before the largest one is taken


def draw_boxes(
    count: int,
    size: tuple[int, ...],
    *,
    area: tuple[float, float],
    device: torch.device,
    generator: Generator | None = None,
) -> Tensor:
    """Draw boxes (count, 4) of top, left, height and width in whole pixels, as torchvision's random resized crop does.

    >>> draw_boxes(1, (8, 8), area=(1.0, 1.0), device=torch.device("cpu"))
    tensor([[0., 0., 8., 8.]])
    """
    rows, columns = size
    share, slant = torch.rand(2, count, _TRIES, device=device, generator=generator)
    pixels = (area[0] + (area[1] - area[0]) * share) * rows * columns
    narrow, wide = (math.log(ratio) for ratio in _RATIO)
    ratio = (narrow + (wide - narrow) * slant).exp()
    height, width = (pixels / ratio).sqrt().round(), (pixels * ratio).sqrt().round()
    fits = (height >= 1) & (height <= rows) & (width >= 1) & (width <= columns)
    first = fits.int().argmax(dim=1, keepdim=True)
    # Where no box fits, the largest of an allowed ratio is taken.
    most = (min(rows, round(columns / _RATIO[0])), min(columns, round(rows * _RATIO[1])))
    height = torch.where(fits.any(dim=1), height.gather(1, first).squeeze(1), most[0])
    width = torch.where(fits.any(dim=1), width.gather(1, first).squeeze(1), most[1])
    down, right = torch.rand(2, count, device=device, generator=generator)
    top = torch.minimum((down * (rows - height + 1)).floor(), rows - height)
    left = torch.minimum((right * (columns - width + 1)).floor(), columns - width)
    return torch.stack([top, left, height, width], dim=1)


def crop(x: Tensor, boxes: Tensor, flip: Tensor, *, size: tuple[int, int]) -> Tensor:
    """Cut a box (m, 4) out of each image (m, C, H, W), resize it bilinearly, and mirror it where ``flip`` (m,) says.

    >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> crop(x, torch.tensor([[0.0, 1.0, 2.0, 2.0]]), torch.tensor([True]), size=(2, 2)).round(decimals=4).flatten()
    tensor([2., 1., 5., 4.])
    """
    top, left, height, width = boxes.to(x.dtype).unsqueeze(2).unbind(1)  # each (m, 1)
    y = (torch.arange(size[0], device=x.device, dtype=x.dtype) + 0.5).expand(len(x), -1)
    across = (torch.arange(size[1], device=x.device, dtype=x.dtype) + 0.5).expand(len(x), -1)
    across = torch.where(flip[:, None], size[1] - across, across)
    # The centre of an output pixel in the image; beyond the box's outer pixel centres, its outer pixels are repeated.
    y = top + (y * height / size[0] - 0.5).clamp_min(0).minimum(height - 1)  # (m, h)
    across = left + (across * width / size[1] - 0.5).clamp_min(0).minimum(width - 1)  # (m, w)
    y = (2 * y + 1) / x.shape[2] - 1
    across = (2 * across + 1) / x.shape[3] - 1
    shape = (len(x), *size)
    grid = torch.stack([across[:, None, :].expand(shape), y[:, :, None].expand(shape)], dim=-1)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


def shift_hue(x: Tensor, turns: Tensor) -> Tensor:
    """Turn the hue of pixels (m, 3, H, W) between 0 and 1 by ``turns`` (m,) of the colour circle; HSV's V and S stay.

    >>> shift_hue(torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1), torch.tensor([1 / 3])).flatten().round(decimals=4)
    tensor([0., 1., 0.])
    """
    red, green, blue = x.unbind(1)
    high = red.maximum(green).maximum(blue)
    spread = high - red.minimum(green).minimum(blue)
    # Which channel is the highest, as numbers: torch.where takes ten times as long on a CPU.
    not_red = (high - red).sign()
    is_blue = not_red * (high - green).sign()
    is_green = not_red - is_blue
    rise = (1 - not_red) * (green - blue) + is_green * (blue - red) + is_blue * (red - green)
    sixths = rise / spread.clamp_min(torch.finfo(x.dtype).tiny) + 2 * is_green + 4 * is_blue + 6 * turns[:, None, None]
    start = 11 - 2 * torch.arange(3, device=x.device, dtype=x.dtype)[:, None, None]  # 5, 3, 1, and a turn to stay > 0
    place = 6 * ((sixths[:, None] + start) / 6).frac()
    return high[:, None] - spread[:, None] * (2 - (place - 2).abs()).clamp(0, 1)


def solarise(x: Tensor, gate: Tensor) -> Tensor:
    """Invert the pixels of at least ½ in the images that ``gate`` (m,) names: the smaller one of x and 1 − x.

    >>> solarise(torch.tensor([[0.2, 0.9], [0.2, 0.9]]), torch.tensor([True, False]))
    tensor([[0.2000, 0.1000],
            [0.2000, 0.9000]])
    """
    return torch.minimum(x, per_sample(torch.where(gate, 1.0, 2.0).to(x.dtype), x) - x)


def blur_kernel(size: tuple[int, int]) -> tuple[int, int]:
    """Return the odd numbers nearest to a tenth of height and width, at least 3.

    >>> blur_kernel((224, 96))
    (23, 9)
    """
    height, width = (2 * max(1, side // 20) + 1 for side in size)
    return height, width
