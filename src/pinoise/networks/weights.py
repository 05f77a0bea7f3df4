"""Weights as files: our own, and those that others publish. Nothing in such a file is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from pinoise.errors import UserError
from pinoise.files import replacing


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors as safetensors, complete or not at all."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        safetensors.torch.save_file(plain, temporary, metadata=metadata)
        temporary.chmod(mode)  # the library leaves files that only their owner may read


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    if not path.exists():
        raise UserError(f"{path} is missing: train to the end first, or resume the run.")
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read as safetensors ({error}): the file is damaged.") from None


def read_weights(
    path: Path, *, wanted: str = "a state dict as torch.save or safetensors writes it"
) -> dict[str, Tensor]:
    """Read a state dict in safetensors or in torch's own format.

    Args:
        path: a file, in safetensors if its name says so.
        wanted: what a user whose file does not serve is asked for.

    >>> read_weights(Path("resnet18.pth"))
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: resnet18.pth does not exist: give a state dict as torch.save or safetensors writes it.
    """
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"{path} {found}: give {wanted}.")
    try:
        if path.suffix == ".safetensors":
            state = safetensors.torch.load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception:  # whatever the bytes of a file that holds something else make the reader stumble over
        raise UserError(f"{path} is damaged or holds no weights: give {wanted}.") from None
    if not _is_state_dict(state):
        raise UserError(f"{path} holds {type(state).__name__}, not tensors by name alone: give {wanted}.")
    return dict(state)


def _is_state_dict(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in value.items()
    )
