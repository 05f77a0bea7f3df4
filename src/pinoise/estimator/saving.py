"""A fitted estimator as one safetensors file, with everything but tensors as JSON in its header; no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import safetensors
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, ValidationInfo, field_validator
from torch import Tensor

from pinoise.choices import import_path
from pinoise.errors import UserError
from pinoise.files import check_is_file
from pinoise.networks import read_stored, write_tensors
from pinoise.training.automatic import NOISE_KINDS

FORMAT = 6  # raised whenever older files can no longer be read


class ModelHeader(BaseModel):
    """Everything but tensors in a model file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    params: dict[str, Any]
    history: dict[str, list[int | float]]
    flags: list[str]
    trials: dict[str, FiniteFloat]
    n_features_in: Annotated[int, Field(ge=1)]
    feature_names_in: list[str]
    preparation: dict[str, Any] | None
    of_sparse: bool  # whether it was fitted on sparse rows

    @field_validator("trials")
    @classmethod
    def _of_known_noises(cls, trials: dict[str, float], before: ValidationInfo) -> dict[str, float]:
        if trials.keys() != (NOISE_KINDS.keys() if before.data.get("params", {}).get("noise") == "auto" else set()):
            raise ValueError
        return trials

    @field_validator("feature_names_in")
    @classmethod
    def _of_every_feature(cls, names: list[str], before: ValidationInfo) -> list[str]:
        if names and len(names) != before.data.get("n_features_in"):
            raise ValueError
        return names


def write_model(path: Path, header: ModelHeader, **parts: Mapping[str, Tensor]) -> None:
    """Write a model file, complete or not at all: plain values in its header, and the tensors of several parts."""
    tensors = {f"{part}.{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
    plain = json.loads(json.dumps(header.model_dump(), default=_plain_number))
    write_tensors(path, tensors, metadata={"format": FORMAT, **plain})


def read_model(path: Path) -> tuple[ModelHeader, dict[str, dict[str, Tensor]]]:
    """Read what ``write_model`` wrote: the header, and the tensors of every part. Refuse any other file."""
    if not path.exists():
        raise UserError(f"{path} does not exist: give a file that PiNDA.save wrote.")
    check_is_file(path)
    if (older := _older_format(path)) is not None:
        raise UserError(f"{path} has format {older}: this version of pinoise reads format {FORMAT}.")
    tensors, values = read_stored(path)
    found = values.pop("format", None)
    if found is None:
        raise UserError(f"{path} was not written by PiNDA.save: its header has no format.")
    if found != FORMAT:
        raise UserError(f"{path} has format {found!r}: this version of pinoise reads format {FORMAT}.")
    try:
        header = ModelHeader.model_validate(values)
    except ValidationError as error:
        entry = str(error.errors()[0]["loc"][0])
        raise UserError(f"{path} has no sound entry {entry!r} in its header: the file is damaged.") from None
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in header.params.items()}
    parts: dict[str, dict[str, Tensor]] = {"encoder": {}, "embedding": {}, "noise": {}, "standardizer": {}}
    known = len(parts)
    for name, tensor in tensors.items():
        part, _, inner = name.partition(".")
        parts.setdefault(part, {})[inner] = tensor
    if len(parts) > known:
        raise UserError(f"{path} holds tensors of an unknown part {list(parts)[known]!r}: the file is damaged.")
    return header.model_copy(update={"params": params}), parts


def _older_format(path: Path) -> int | None:
    """Return the format of a file from before there were checksums, whose header had it in the open."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            found = json.loads((file.metadata() or {})["pinoise"])["format"]
    except Exception:  # any other file
        return None
    return found if isinstance(found, int) else None


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
