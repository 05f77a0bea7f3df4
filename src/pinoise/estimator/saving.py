"""A fitted estimator as one safetensors file, with all that is no tensor as JSON in its header; no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from torch import Tensor

from pinoise.choices import import_path
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.networks import read_tensors, write_tensors
from pinoise.training.units import standardizer_from, standardizer_tensors

FORMAT = 3
"""Raised whenever older files can no longer be read."""


@dataclass(frozen=True)
class SavedEstimator:
    """What a file holds."""

    params: dict[str, Any]
    history: dict[str, list[float]]
    flags: list[str]
    feature_names_in: list[str]  # empty where the input had none
    encoder: Mapping[str, Tensor]
    noise: Mapping[str, Tensor]
    standardizer: Standardizer

    def write(self, path: Path) -> None:
        """Write the file, complete or not at all."""
        header = {
            "format": FORMAT,
            "params": self.params,
            "history": self.history,
            "flags": self.flags,
            "feature_names_in": self.feature_names_in,
        }
        tensors = {
            **{f"encoder.{name}": tensor for name, tensor in self.encoder.items()},
            **{f"noise.{name}": tensor for name, tensor in self.noise.items()},
            **{f"standardizer.{name}": tensor for name, tensor in standardizer_tensors(self.standardizer).items()},
        }
        write_tensors(path, tensors, metadata={"pinoise": json.dumps(header, default=_plain_number)})

    @classmethod
    def read(cls, path: Path) -> SavedEstimator:
        """Read what ``write`` wrote."""
        tensors = read_tensors(path)
        with safetensors.safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("pinoise")
        if text is None:
            raise UserError(f"{path} was not written by PiNDA.save: its header has no entry 'pinoise'.")
        header = json.loads(text)
        if header["format"] != FORMAT:
            raise UserError(f"{path} has format {header['format']}: this version of pinoise reads format {FORMAT}.")
        params = header["params"]
        return cls(
            params={name: tuple(value) if isinstance(value, list) else value for name, value in params.items()},
            history=header["history"],
            flags=header["flags"],
            feature_names_in=header["feature_names_in"],
            encoder=_under("encoder.", tensors),
            noise=_under("noise.", tensors),
            standardizer=standardizer_from(_under("standardizer.", tensors)),
        )


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


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
