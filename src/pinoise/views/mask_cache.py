"""Background masks on disk: computed once for the same images, weights and model, in blocks that survive a kill."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from pinoise.errors import UserError
from pinoise.files import read_json, replacing, sha256_of, write_json
from pinoise.views.segment import (
    BATCH,
    DEFAULT_SAM,
    SamSize,
    TellDone,
    background_masks,
    check_images,
    find_sam,
    load_sam,
)

if TYPE_CHECKING:
    from kornia.models.sam.model import Sam

_BLOCK = 64  # images whose masks are lost at most when the work is interrupted


def cached_masks(
    images: npt.NDArray[np.uint8],
    weights: Path,
    *,
    folder: Path,
    model: str | SamSize = DEFAULT_SAM,
    device: torch.device | str = "cpu",
    batch: int = BATCH,
    progress: TellDone | None = None,
) -> npt.NDArray[np.bool_]:
    """Return ``background_masks``, from a folder if it holds those of the same images, weights and model.

    Masks are kept as ``<key>.npy``, with the checksums of everything they were made from in ``<key>.json`` beside them.
    Interrupted work continues after the last finished block of images.

    Args:
        images: (n, h, w) or (n, h, w, c) with 1 or 3 channels.
        weights: the file of SAM's weights.
        folder: where masks are kept; made if it does not exist.
        model: which SAM the weights are of.
        device: what computes the masks.
        batch: images at a time.
        progress: called after every batch.
    """
    check_images(images)
    parts = {
        "images": _images_checksum(images),
        "weights": _weights_checksum(weights),
        "model": _plain(find_sam(model)),
        "background": "best of border points",
    }
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
    stored, described, blocks = (folder / f"{key}{ending}" for ending in (".npy", ".json", ".blocks"))
    if (masks := _read_stored(stored, described, parts)) is not None:
        return masks
    sam: Sam | None = None
    files: list[Path] = []
    try:
        blocks.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(images), _BLOCK):
            part = images[start : start + _BLOCK]
            files.append(blocks / f"{start}.npy")
            if _read_block(files[-1], (len(part), *images.shape[1:3])) is None:
                sam = load_sam(weights, model=model).to(device) if sam is None else sam
                report = _shifted(progress, start, len(images))
                block = background_masks(part, sam, batch=batch, progress=report)
                with replacing(files[-1]) as temporary:
                    np.save(temporary, block)
            elif progress is not None:
                progress(start + len(part), len(images))
        _join(stored, files, images.shape[:3])
        write_json(described, {**parts, "masks": sha256_of(stored)})
        shutil.rmtree(blocks, ignore_errors=True)
    except OSError as error:
        raise UserError(
            f"cannot keep masks in {folder} ({error.strerror or error}): make room there, or choose another folder."
        ) from error
    return _read_masks(stored)


def _images_checksum(images: npt.NDArray[np.uint8]) -> str:
    digest = hashlib.sha256(str(images.shape).encode())
    for start in range(0, len(images), 1024):
        digest.update(np.ascontiguousarray(images[start : start + 1024]).data)
    return digest.hexdigest()


def _weights_checksum(path: Path) -> str:
    try:
        return sha256_of(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: give the file of SAM's weights.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read as SAM's weights ({error.strerror or error}).") from None


def _plain(model: str | SamSize) -> str | dict[str, Any]:
    return model if isinstance(model, str) else model._asdict() | {"global_blocks": list(model.global_blocks)}


def _read_masks(path: Path) -> npt.NDArray[np.bool_]:
    masks: npt.NDArray[np.bool_] = np.load(path, allow_pickle=False)
    return masks


def _read_stored(stored: Path, described: Path, parts: dict[str, Any]) -> npt.NDArray[np.bool_] | None:
    """Return the masks of a finished computation, None if a file is missing or not as it was written."""
    try:
        return _read_masks(stored) if read_json(described) == {**parts, "masks": sha256_of(stored)} else None
    except (OSError, ValueError):  # a UserError of a damaged description is a ValueError
        return None


def _read_block(path: Path, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    try:
        block: npt.NDArray[np.bool_] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return block if block.shape == shape and block.dtype == np.bool_ else None


def _join(stored: Path, blocks: list[Path], shape: tuple[int, ...]) -> None:
    """Write the blocks as one array, with one block at a time in memory."""
    with replacing(stored) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|b1", "fortran_order": False, "shape": shape})
        for block in blocks:
            file.write(np.load(block, allow_pickle=False).tobytes())


def _shifted(progress: TellDone | None, start: int, total: int) -> TellDone | None:
    return None if progress is None else lambda done, _: progress(start + done, total)
