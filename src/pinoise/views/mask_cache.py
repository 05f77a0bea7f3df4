"""Background masks on disk: computed once for the same images, weights and model, in blocks that survive a kill."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from pinoise.errors import UserError
from pinoise.views.segment import SAM, Progress, SamSize, background_masks, check_images, find_sam, load_sam

if TYPE_CHECKING:
    from kornia.models.sam.model import Sam

_BLOCK = 64  # images whose masks are lost at most when the work is interrupted


def cached_masks(
    images: npt.NDArray[np.uint8],
    weights: Path,
    *,
    folder: Path,
    model: str | SamSize = SAM,
    device: torch.device | str = "cpu",
    batch: int = 4,
    progress: Progress | None = None,
) -> npt.NDArray[np.bool_]:
    """Return ``background_masks``, from a folder if it holds those of the same images, weights and model.

    Masks are kept as ``<key>.npy``, with the checksums of all that they were made from in ``<key>.json`` beside them.
    Work that is interrupted goes on after the last block of images that it finished.

    Args:
        images: (n, h, w) or (n, h, w, c) with 1 or 3 channels.
        weights: the file of SAM's weights.
        folder: where masks are kept; made if it does not exist.
        model: which SAM the weights are of.
        device: what computes the masks.
        batch: images at a time.
        progress: told after every batch how many images are done.
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
                _write(files[-1], partial(np.save, arr=block))
            elif progress is not None:
                progress(start + len(part), len(images))
        _write(stored, lambda file: _join(file, files, images.shape[:3]))
        text = json.dumps({**parts, "masks": _checksum(stored)}, indent=2) + "\n"
        _write(described, lambda file: file.write(text.encode()))
        shutil.rmtree(blocks, ignore_errors=True)
    except OSError as error:
        raise UserError(
            f"cannot keep masks in {folder} ({error.strerror or error}): make room there, or choose another folder."
        ) from error
    return _mapped(stored)


def _images_checksum(images: npt.NDArray[np.uint8]) -> str:
    digest = hashlib.sha256(str(images.shape).encode())
    for start in range(0, len(images), 1024):
        digest.update(np.ascontiguousarray(images[start : start + 1024]).data)
    return digest.hexdigest()


def _weights_checksum(path: Path) -> str:
    try:
        return _checksum(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: give the file of SAM's weights.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read as SAM's weights ({error.strerror or error}).") from None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(model: str | SamSize) -> str | dict[str, Any]:
    return model if isinstance(model, str) else model._asdict() | {"global_blocks": list(model.global_blocks)}


def _mapped(path: Path) -> npt.NDArray[np.bool_]:
    masks: npt.NDArray[np.bool_] = np.load(path, mmap_mode="c", allow_pickle=False)
    return masks


def _read_stored(stored: Path, described: Path, parts: dict[str, Any]) -> npt.NDArray[np.bool_] | None:
    """The masks of a finished computation, None where a file is missing or not as it was written."""
    try:
        known = json.loads(described.read_text(encoding="utf-8"))
        return _mapped(stored) if known == {**parts, "masks": _checksum(stored)} else None
    except (OSError, ValueError):
        return None


def _read_block(path: Path, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    try:
        block: npt.NDArray[np.bool_] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return block if block.shape == shape and block.dtype == np.bool_ else None


def _join(file: IO[bytes], blocks: list[Path], shape: tuple[int, ...]) -> None:
    """Write the blocks as one array, of which never more than a block is in memory."""
    np.lib.format.write_array_header_1_0(file, {"descr": "|b1", "fortran_order": False, "shape": shape})
    for block in blocks:
        file.write(np.load(block, allow_pickle=False).tobytes())


def _shifted(progress: Progress | None, start: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(start + done, total)


def _write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file aside and rename it, so that a reader never meets half of one."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with aside.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
