"""Background masks from a Segment-Anything model (SAM; Kirillov et al., 2023), found once before training.

SAM answers a prompt, here a point, with masks and a predicted IoU for each. The paper keeps the background with the
highest probability. Here the prompts are the corners and the middles of the edges of the image, which most likely show
background. Of all masks that SAM returns for them, the one with the highest predicted IoU is the background. The model
is kornia's; its tensors have the names of the published checkpoints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from pinoise.data.disk import kept, place_of
from pinoise.errors import UserError, needing, unknown_choice
from pinoise.files import sha256_of
from pinoise.modes import Randomness
from pinoise.networks.weights import misfit, read_weights

if TYPE_CHECKING:
    from kornia.models.sam.model import Sam

VERSION = 1  # to be raised whenever other masks are found in the same images
BLOCK = 256  # images whose masks are kept together, and are lost at most when the work is interrupted
_BATCH = 4  # images that SAM segments at a time

# The published models; ``mobile_sam`` (Zhang et al., 2023) is by far the quickest on a CPU.
SamName = Literal["vit_b", "vit_l", "vit_h", "mobile_sam"]
SAM_MODELS: tuple[SamName, ...] = get_args(SamName)
DEFAULT_SAM: SamName = "vit_b"

# The training pixels of SAM, in units of 0..255.
_MEAN = (123.675, 116.28, 103.53)
_STD = (58.395, 57.12, 57.375)

Masks = npt.NDArray[np.bool_]
Images = npt.NDArray[np.uint8]


class SamSize(NamedTuple):
    """The sizes of a SAM that nobody published, whose image encoder is a ViT."""

    width: int
    depth: int
    heads: int
    global_blocks: tuple[int, ...]  # blocks that attend to the whole image; the others to a window
    image_size: int
    patch: int
    window: int
    channels: int  # of the decoder
    decoder_heads: int
    decoder_hidden: int


def build_sam(model: SamName | SamSize) -> Sam:
    """Return an untrained SAM: a published one by its name, or one of other sizes."""
    if not isinstance(model, SamSize) and model not in SAM_MODELS:
        raise unknown_choice("SAM model", model, SAM_MODELS)
    with needing("vision", what="a Segment-Anything model"):
        from kornia.models.sam.architecture.common import LayerNorm
        from kornia.models.sam.architecture.image_encoder import ImageEncoderViT
        from kornia.models.sam.architecture.mask_decoder import MaskDecoder
        from kornia.models.sam.architecture.prompt_encoder import PromptEncoder
        from kornia.models.sam.architecture.transformer import TwoWayTransformer
        from kornia.models.sam.model import Sam
    if not isinstance(model, SamSize):
        return Sam.from_name(model)
    grid = model.image_size // model.patch
    encoder = ImageEncoderViT(
        model.image_size,
        patch_size=model.patch,
        embed_dim=model.width,
        depth=model.depth,
        num_heads=model.heads,
        out_chans=model.channels,
        norm_layer=LayerNorm,
        use_rel_pos=True,
        window_size=model.window,
        global_attn_indexes=model.global_blocks,
    )
    prompts = PromptEncoder(
        embed_dim=model.channels,
        image_embedding_size=(grid, grid),
        input_image_size=(model.image_size, model.image_size),
        mask_in_chans=16,
    )
    transformer = TwoWayTransformer(
        depth=2, embedding_dim=model.channels, num_heads=model.decoder_heads, mlp_dim=model.decoder_hidden
    )
    return Sam(encoder, prompts, MaskDecoder(transformer_dim=model.channels, transformer=transformer))


def load_sam(weights: Path, *, model: SamName | SamSize = DEFAULT_SAM) -> Sam:
    """Return a SAM with the weights of a file, ready to segment.

    Args:
        weights: a published checkpoint (.pth), or the same tensors as .safetensors.
        model: a name among ``SAM_MODELS``, or the sizes of another SAM.
    """
    blank = _blank(model)
    tensors = read_weights(weights, wanted="SAM's checkpoint as it was published")
    if fault := misfit(blank.state_dict(), tensors):
        label = "a SAM of the given size" if isinstance(model, SamSize) else f"SAM {model!r}"
        fitting = next((name for name in SAM_MODELS if misfit(_blank(name).state_dict(), tensors) is None), None)
        advice = f"choose the model {fitting!r}" if fitting else "give a checkpoint of Segment Anything"
        raise UserError(f"{weights} does not hold the weights of {label} ({fault}): {advice}.")
    blank.load_state_dict(tensors, assign=True)
    return blank.eval().requires_grad_(False)


def kept_masks(
    read: Callable[[int, int], Images],
    count: int,
    weights: Path,
    *,
    model: SamName | SamSize = DEFAULT_SAM,
    device: torch.device | str = "cpu",
    folder: Path | None = None,
    block: int = BLOCK,
) -> Masks:
    """Return ``background_masks``, from a folder as far as it holds those of the same images, weights and model.

    Interrupted work continues after the last finished block of images, and several processes share the blocks.

    Args:
        read: returns the images from one number up to another, (m, h, w, c) with 1 or 3 channels.
        count: the number of images.
        weights: the file of SAM's weights.
        model: which SAM the weights are of.
        device: what computes the masks.
        folder: where masks are kept; made if it does not exist, and the cache's if None.
        block: the number of images whose masks are kept together.
    """
    from tqdm import tqdm

    about = (_weights_checksum(weights), model)
    sam = cache(lambda: load_sam(weights, model=model).to(device))
    masks = []
    for start in tqdm(range(0, count, block), "finding the background", unit="block", leave=False, disable=None):
        images = read(start, min(start + block, count))

        def make(place: Path, images: Images = images) -> dict[str, Any]:
            np.save(place / "masks.npy", background_masks(images, sam()))
            return {}

        content = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
        stored = kept(place_of("masks", "masks", *about, images.shape, content, folder=folder), VERSION, make)
        masks.append(np.load(stored.folder / "masks.npy"))
    return np.concatenate(masks)


def background_masks(images: Images, model: Sam) -> Masks:
    """Return masks (n, h, w) that are True where SAM sees background; the same for the same images and model.

    Args:
        images: (n, h, w, c) with 1 or 3 channels, of any size; each is scaled to SAM's.
        model: from ``load_sam``, on the device that does the work.
    """
    if images.shape[3] not in (1, 3):
        raise UserError(f"images for SAM must have 1 or 3 channels, got {images.shape[3]}: give masks of your own.")
    return np.concatenate(
        [_segment(images[start : start + _BATCH], model).cpu().numpy() for start in range(0, len(images), _BATCH)]
    )


@torch.no_grad()
def _segment(images: Images, model: Sam) -> Tensor:
    """Return the background (m, h, w) of a few images."""
    device = next(model.parameters()).device
    pixels = torch.from_numpy(np.ascontiguousarray(images)).to(device)
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


def _blank(model: SamName | SamSize) -> Sam:
    """Return a SAM without weights of its own, where torch allows it: they come from a file and are held once."""
    # The encoder of ``mobile_sam`` is no plain ViT, and cannot be built without values.
    where = nullcontext() if model == "mobile_sam" else torch.device("meta")
    with Randomness(0).lent(), where:  # the weights of the file replace what is drawn
        return build_sam(model)


def _weights_checksum(path: Path) -> str:
    try:
        return sha256_of(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: give the file of SAM's weights.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read as SAM's weights ({error.strerror or error}).") from None
