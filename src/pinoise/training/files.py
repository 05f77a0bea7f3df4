"""Files of a run folder: each is written aside and renamed, so that a reader never meets half of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from pinoise.data.layout import LAYOUTS
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.strict_json import to_json
from pinoise.training.checkpoint import sync


def write_text(path: Path, text: str) -> None:
    """Write a text file in one move."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    sync(partial)
    partial.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file in one move."""
    write_text(path, to_json(value) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: the folder is not a finished run.") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): the run folder is damaged.") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors as safetensors in one move."""
    partial = path.with_name(path.name + ".partial")
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    partial.touch()
    mode = partial.stat().st_mode
    safetensors.torch.save_file(plain, partial, metadata=metadata)
    partial.chmod(mode)  # the library leaves files that only their owner may read
    sync(partial)
    partial.replace(path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    if not path.exists():
        raise UserError(f"{path} is missing: train to the end first, or resume the run.")
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read as safetensors ({error}): the file is damaged.") from None


def standardizer_tensors(standardizer: Standardizer) -> dict[str, Tensor]:
    """The standardiser as tensors to be saved."""
    return {
        "mean": torch.from_numpy(standardizer.mean),
        "scale": torch.from_numpy(standardizer.scale),
        "deviation": torch.from_numpy(standardizer.deviation),
        "unit_rows": torch.tensor(standardizer.unit_rows),
        "layout": torch.tensor(LAYOUTS.index(standardizer.layout)),
        "white": torch.tensor(standardizer.white, dtype=torch.float64),
    }


def standardizer_from(tensors: Mapping[str, Tensor]) -> Standardizer:
    """The standardiser from saved tensors."""
    return Standardizer(
        mean=np.asarray(tensors["mean"], dtype=np.float64),
        scale=np.asarray(tensors["scale"], dtype=np.float64),
        deviation=np.asarray(tensors["deviation"], dtype=np.float64),
        unit_rows=bool(tensors["unit_rows"]),
        layout=LAYOUTS[int(tensors["layout"])],
        white=float(tensors["white"]),
    )
