"""Background masks from a Segment-Anything model (SAM; Kirillov et al., 2023), computed once before training.

SAM answers a prompt, here a point, with masks and a predicted IoU for each. The paper keeps the background with the
highest probability. Here the prompts are the corners and the middles of the edges of the image, which most likely show
background. Of all masks that SAM returns for them, the one with the highest predicted IoU is the background. The model
is kornia's; its tensors have the names of the published checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from pinoise.errors import UserError, unknown_choice
from pinoise.modes import Randomness
from pinoise.networks import read_weights

if TYPE_CHECKING:
    from kornia.models.sam.model import Sam

# A function that is called with the number of images that are done, and of all images.
TellDone = Callable[[int, int], None]

BATCH = 4  # images that SAM segments at a time

SamName = Literal["vit_b", "vit_l", "vit_h", "mobile_sam"]
DEFAULT_SAM: SamName = "vit_b"

# The training pixels of SAM, in units of 0..255.
_MEAN = (123.675, 116.28, 103.53)
_STD = (58.395, 57.12, 57.375)


class SamSize(NamedTuple):
    """The sizes of a SAM whose image encoder is a ViT."""

    width: int
    depth: int
    heads: int
    global_blocks: tuple[int, ...]  # blocks that attend to the whole image; the others to a window
    image_size: int = 1024
    patch: int = 16
    window: int = 14
    channels: int = 256  # of the decoder
    decoder_heads: int = 8
    decoder_hidden: int = 2048


_SIZES: dict[str, SamSize] = {
    "vit_b": SamSize(width=768, depth=12, heads=12, global_blocks=(2, 5, 8, 11)),
    "vit_l": SamSize(width=1024, depth=24, heads=16, global_blocks=(5, 11, 17, 23)),
    "vit_h": SamSize(width=1280, depth=32, heads=16, global_blocks=(7, 15, 23, 31)),
}
_MOBILE = "mobile_sam"  # its encoder is not a plain ViT

# The published models; ``mobile_sam`` (Zhang et al., 2023) is by far the quickest on a CPU.
SAM_MODELS: tuple[str, ...] = (*_SIZES, _MOBILE)


def find_sam(model: str | SamSize) -> str | SamSize:
    """Return the sizes of a model, or its name if it is not a plain ViT."""
    if isinstance(model, SamSize):
        return model
    if model not in SAM_MODELS:
        raise unknown_choice("SAM model", model, SAM_MODELS)
    return _SIZES.get(model, model)


def build_sam(model: str | SamSize) -> Sam:
    """Return an untrained SAM."""
    size = find_sam(model)
    try:
        from kornia.models.sam.architecture.common import LayerNorm
        from kornia.models.sam.architecture.image_encoder import ImageEncoderViT
        from kornia.models.sam.architecture.mask_decoder import MaskDecoder
        from kornia.models.sam.architecture.prompt_encoder import PromptEncoder
        from kornia.models.sam.architecture.transformer import TwoWayTransformer
        from kornia.models.sam.model import Sam
    except ImportError:
        raise UserError("a Segment-Anything model needs the extra 'vision': pip install 'pinoise[vision]'") from None
    if isinstance(size, str):
        return Sam.from_name(size)
    if size.image_size % size.patch:
        raise UserError(f"a patch of {size.patch} does not divide SAM's image size of {size.image_size}.")
    grid = size.image_size // size.patch
    encoder = ImageEncoderViT(
        size.image_size,
        patch_size=size.patch,
        embed_dim=size.width,
        depth=size.depth,
        num_heads=size.heads,
        out_chans=size.channels,
        norm_layer=LayerNorm,
        use_rel_pos=True,
        window_size=size.window,
        global_attn_indexes=size.global_blocks,
    )
    prompts = PromptEncoder(
        embed_dim=size.channels,
        image_embedding_size=(grid, grid),
        input_image_size=(size.image_size, size.image_size),
        mask_in_chans=16,
    )
    transformer = TwoWayTransformer(
        depth=2, embedding_dim=size.channels, num_heads=size.decoder_heads, mlp_dim=size.decoder_hidden
    )
    return Sam(encoder, prompts, MaskDecoder(transformer_dim=size.channels, transformer=transformer))


def load_sam(weights: Path, *, model: str | SamSize = DEFAULT_SAM) -> Sam:
    """Return a SAM with the weights of a file, ready to segment.

    Args:
        weights: a published checkpoint (.pth), or the same tensors as .safetensors.
        model: a name among ``SAM_MODELS``, or the sizes of another SAM.
    """
    blank = _blank(model)
    tensors = read_weights(weights, wanted="SAM's checkpoint as it was published")
    if fault := _misfit(blank, tensors):
        label = f"SAM {model!r}" if isinstance(model, str) else "a SAM of the given size"
        fitting = next((name for name in SAM_MODELS if _misfit(_blank(name), tensors) is None), None)
        advice = f"choose the model {fitting!r}" if fitting else "give a checkpoint of Segment Anything"
        raise UserError(f"{weights} does not hold the weights of {label} ({fault}): {advice}.")
    blank.load_state_dict(tensors, assign=True)
    return blank.eval().requires_grad_(False)


def background_masks(
    images: npt.NDArray[np.uint8], model: Sam, *, batch: int = BATCH, progress: TellDone | None = None
) -> npt.NDArray[np.bool_]:
    """Return masks (n, h, w) that are True where SAM sees background; the same for the same images and model.

    Args:
        images: (n, h, w) or (n, h, w, c) with 1 or 3 channels, of any size; each is scaled to SAM's.
        model: from ``load_sam``, on the device that does the work.
        batch: images at a time.
        progress: called after every batch.
    """
    check_images(images)
    masks = np.zeros(images.shape[:3], dtype=np.bool_)
    for start in range(0, len(images), batch):
        part = np.asarray(images[start : start + batch])
        masks[start : start + len(part)] = _segment(part, model).cpu().numpy()
        if progress is not None:
            progress(start + len(part), len(images))
    return masks


@torch.no_grad()
def _segment(images: npt.NDArray[np.uint8], model: Sam) -> Tensor:
    """Return the background (m, h, w) of a few images."""
    device = next(model.parameters()).device
    pixels = torch.from_numpy(np.ascontiguousarray(images)).to(device)
    pixels = pixels.unsqueeze(-1) if pixels.ndim == 3 else pixels
    pixels = pixels.permute(0, 3, 1, 2).float().expand(-1, 3, -1, -1)  # (m, 3, h, w)
    height, width = pixels.shape[2:]
    side = model.image_encoder.img_size
    inner = (max(1, round(height * side / max(height, width))), max(1, round(width * side / max(height, width))))
    pixels = F.interpolate(pixels, inner, mode="bilinear", align_corners=False, antialias=True)
    mean, std = (pixels.new_tensor(values)[:, None, None] for values in (_MEAN, _STD))
    pixels = F.pad((pixels - mean) / std, (0, side - inner[1], 0, side - inner[0]))
    points = border_points(height, width, inner).to(device)[:, None]  # (8, 1, 2)
    labels = torch.ones(points.shape[:2], device=device)
    masks = []
    for result in model(pixels, [{"points": (points, labels)}] * len(pixels), multimask_output=True):
        best = result.scores.argmax()  # over (prompts, masks for each)
        logits = result.logits.flatten(0, 1)[best][None, None]
        logits = F.interpolate(logits, (side, side), mode="bilinear", align_corners=False)
        logits = logits[..., : inner[0], : inner[1]]  # without the padding
        logits = F.interpolate(logits, (height, width), mode="bilinear", align_corners=False)
        masks.append(logits[0, 0] > model.mask_threshold)
    return torch.stack(masks)


def border_points(height: int, width: int, inner: tuple[int, int]) -> Tensor:
    """Return (x, y) of the pixels in the corners and in the middle of the edges, in an image resized to ``inner``.

    >>> border_points(3, 3, (3, 3)).int().tolist()
    [[0, 0], [1, 0], [2, 0], [0, 1], [2, 1], [0, 2], [1, 2], [2, 2]]
    """
    places = [(x, y) for y in (0, 0.5, 1) for x in (0, 0.5, 1) if (x, y) != (0.5, 0.5)]
    centres = torch.tensor(places) * torch.tensor([width - 1, height - 1]) + 0.5
    return centres * torch.tensor([inner[1] / width, inner[0] / height]) - 0.5


def check_images(images: npt.NDArray[np.uint8]) -> None:
    """Refuse images that SAM does not take."""
    if images.dtype != np.uint8:
        raise UserError(f"images for SAM must be uint8, got {images.dtype}.")
    if images.ndim not in (3, 4) or 0 in images.shape:
        raise UserError(f"images for SAM must have shape (n, height, width) or with channels last, got {images.shape}.")
    if images.ndim == 4 and images.shape[3] not in (1, 3):
        raise UserError(f"images for SAM must have 1 or 3 channels, got {images.shape[3]}: give masks of your own.")


def _blank(model: str | SamSize) -> Sam:
    """Return a SAM without weights of its own, where torch allows it: they come from a file and are held once."""
    with Randomness(0).lent():  # the weights of the file replace what is drawn
        if find_sam(model) == _MOBILE:
            return build_sam(model)
        with torch.device("meta"):
            return build_sam(model)


def _misfit(sam: Sam, tensors: dict[str, Tensor]) -> str | None:
    """Return why weights do not fit a model, None if they do."""
    wanted = sam.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors:
            return f"{name} is missing"
        if tensors[name].shape != tensor.shape:
            return f"{name} has shape {tuple(tensors[name].shape)} instead of {tuple(tensor.shape)}"
    extra = next((name for name in tensors if name not in wanted), None)
    return None if extra is None else f"{extra} is not part of it"
