"""A fitted estimator as one safetensors file, with everything but tensors as JSON in its header; no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from torch import Tensor

from pinoise.choices import import_path
from pinoise.errors import UserError
from pinoise.networks import read_tensors, write_tensors

FORMAT = 3  # raised whenever older files can no longer be read


def write_model(path: Path, header: Mapping[str, Any], **parts: Mapping[str, Tensor]) -> None:
    """Write a model file, complete or not at all: plain values in its header, and the tensors of several parts."""
    tensors = {f"{part}.{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
    text = json.dumps({"format": FORMAT, **header}, default=_plain_number)
    write_tensors(path, tensors, metadata={"pinoise": text})


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
    """Read what ``write_model`` wrote: the header, and the tensors of every part."""
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in read_tensors(path).items():
        part, _, inner = name.partition(".")
        parts.setdefault(part, {})[inner] = tensor
    with safetensors.safe_open(path, framework="pt") as file:
        text = (file.metadata() or {}).get("pinoise")
    if text is None:
        raise UserError(f"{path} was not written by PiNDA.save: its header has no entry 'pinoise'.")
    header: dict[str, Any] = json.loads(text)
    if header["format"] != FORMAT:
        raise UserError(f"{path} has format {header['format']}: this version of pinoise reads format {FORMAT}.")
    params = header["params"]
    header["params"] = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
    return header, parts


def portable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that a file without pickle can hold: a class or function by its import path.

    >>> from pinoise.methods import SimCLR
    >>> portable({"method": SimCLR, "epochs": 3})
    {'method': 'pinoise.methods.simclr:SimCLR', 'epochs': 3}
    """
    return {name: _portable(name, value) for name, value in params.items()}


def _portable(parameter: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _portable(parameter, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(parameter, inner) for inner in value]
    if not callable(value):
        return value
    path = import_path(value)
    if path is None:
        raise UserError(
            f"{parameter} holds {getattr(value, '__name__', type(value).__name__)!r}, which cannot be imported by a "
            "name, so a file without pickle cannot hold it: give a class or function of a module of yours, or pickle "
            "the estimator."
        )
    return path


def _plain_number(value: Any) -> Any:
    """Turn numpy's numbers, which grids of parameters are made of, into JSON's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} has no place in a file")
