"""Weights and other tensors in files, of which nothing is executed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.files import check_is_file, written

_ENTRY = "pinoise"  # of the file's metadata; a single one, because safetensors writes several in any order


class StoredTensors(NamedTuple):
    """What a safetensors file of ours holds."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None) -> None:
    """Write tensors and JSON values to a safetensors file atomically, with a checksum of both against damage."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(metadata or {})
    seal = json.dumps({"sha256": digest(plain, text), "metadata": text})
    with written(path) as temporary:
        temporary.write_bytes(safetensors.torch.save(plain, metadata={_ENTRY: seal}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file that ``write_tensors`` wrote. Refuse a damaged one."""
    return read_stored(path).tensors


def read_stored(path: Path) -> StoredTensors:
    """Read what ``write_tensors`` wrote. The checksum takes a pass over the tensors, at about 1 GB/s."""
    if not path.exists():
        raise UserError(f"{path} is missing: train to the end first, or resume the run.")
    check_is_file(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            entries = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except MemoryError:
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # what another kind of file or a damaged one raises in the reader
        raise UserError(f"{path} cannot be read as safetensors ({error}): the file is damaged.") from None
    try:
        seal = json.loads(entries[_ENTRY])
        expected, text = str(seal["sha256"]), str(seal["metadata"])
        metadata = dict(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{path} has no checksum: the file is damaged or was not written by this version of pinoise."
        ) from None
    if digest(tensors, text) != expected:
        raise UserError(f"{path} does not match its checksum: the file is damaged.")
    return StoredTensors(tensors, metadata)


def digest(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """Return the SHA-256 of tensors, with their names, types and shapes, and of a text beside them.

    >>> one, other = digest({"a": torch.zeros(2, 1)}), digest({"a": torch.zeros(1, 2)})
    >>> len(one), one == other, one == digest({"a": torch.zeros(2, 1)})
    (64, False, True)
    """
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        values: Any = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        found.update(values)
    found.update(text.encode())
    return found.hexdigest()


def check_finite_weights(
    tensors: Mapping[str, Tensor], *, where: object, built: Mapping[str, Tensor] | None = None
) -> None:
    """Refuse tensors that hold nan or infinite numbers.

    Args:
        tensors: the stored tensors.
        where: what they are of, for the message.
        built: the tensors of the module before they are loaded. A buffer that is not finite there, such as a mask of
            attention, may be stored so.

    >>> check_finite_weights({"weight": torch.tensor([1.0, float("nan")])}, where="encoder.safetensors")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: encoder.safetensors holds nan or infinite numbers in 'weight': it cannot be used.
    """
    for name, tensor in tensors.items():
        strange = ~torch.isfinite(tensor)
        if not bool(strange.any()):
            continue
        before = (built or {}).get(name)
        if before is None or before.shape != tensor.shape or bool((tensor != before.cpu())[strange].any()):
            raise UserError(f"{where} holds nan or infinite numbers in {name!r}: it cannot be used.")


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], *, where: object) -> None:
    """Load stored tensors into a module. Refuse numbers that are not finite.

    Tensors that do not fit raise a RuntimeError, as torch does; torch alone would convert types and some shapes.
    """
    built = module.state_dict()
    for name, tensor in tensors.items():
        if name in built and (tensor.dtype != built[name].dtype or tensor.shape != built[name].shape):
            raise RuntimeError(f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}")
    check_finite_weights(tensors, where=where, built=built)
    module.load_state_dict(dict(tensors))


def misfit(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str | None:
    """Return why stored tensors do not fit those of a module, None if they do.

    >>> misfit({"weight": torch.zeros(2, 1)}, {"weight": torch.zeros(1, 2)})
    'weight has shape (1, 2) instead of (2, 1)'
    """
    for name, tensor in wanted.items():
        if name not in given:
            return f"{name} is missing"
        if (shape := tuple(getattr(given[name], "shape", ()))) != tuple(tensor.shape):
            return f"{name} has shape {shape} instead of {tuple(tensor.shape)}"
    extra = next((name for name in given if name not in wanted), None)
    return None if extra is None else f"{extra} is not part of it"


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
    check_finite_weights(state, where=path)
    return dict(state)


def _is_state_dict(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.layout == torch.strided
        for name, tensor in value.items()
    )
