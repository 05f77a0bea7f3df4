"""Files of weights, our own and published ones. Nothing in a file is executed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from pinoise.errors import UserError
from pinoise.files import written


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file atomically."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with written(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            safetensors.torch.save_file(plain, temporary, metadata=metadata)
        except SafetensorError as error:  # a full disk is told only in its text
            raise _system_error(error) from error
        temporary.chmod(mode)  # safetensors leaves a file that only its owner may read


def _system_error(error: SafetensorError) -> OSError:
    """Return the error of the system that safetensors tells of.

    >>> _system_error(SafetensorError("I/O error: No space left on device (os error 28)")).strerror
    'No space left on device'
    """
    found = re.search(r"os error (\d+)", str(error))
    return OSError(str(error)) if found is None else OSError(int(found[1]), os.strerror(int(found[1])))


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
        path: the file; the suffix ``.safetensors`` selects that format.
        wanted: what the error message asks the user for.

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
    except Exception:  # a file of another kind can raise any error in the reader
        raise UserError(f"{path} is damaged or holds no weights: give {wanted}.") from None
    if not _is_state_dict(state):
        raise UserError(f"{path} holds {type(state).__name__}, not a plain mapping of names to tensors: give {wanted}.")
    return dict(state)


def _is_state_dict(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in value.items()
    )
