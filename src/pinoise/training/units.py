"""A standardiser, which holds the units of samples, as tensors in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pinoise.data.layout import LAYOUTS
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.networks import read_tensors


def read_standardizer(path: Path) -> Standardizer:
    """Read the standardiser of a run folder."""
    try:
        return standardizer_from(read_tensors(path))
    except KeyError as missing:
        raise UserError(f"{path} has no tensor {missing}: the run folder is damaged.") from None


def standardizer_tensors(standardizer: Standardizer) -> dict[str, Tensor]:
    """Return a standardiser as tensors to save."""
    return {
        "mean": torch.from_numpy(standardizer.mean),
        "scale": torch.from_numpy(standardizer.scale),
        "deviation": torch.from_numpy(standardizer.deviation),
        "unit_rows": torch.tensor(standardizer.unit_rows),
        "layout": torch.tensor(LAYOUTS.index(standardizer.layout)),
        "white": torch.tensor(standardizer.white, dtype=torch.float64),
    }


def standardizer_from(tensors: Mapping[str, Tensor]) -> Standardizer:
    """Return the standardiser from saved tensors."""
    return Standardizer(
        mean=np.asarray(tensors["mean"], dtype=np.float64),
        scale=np.asarray(tensors["scale"], dtype=np.float64),
        deviation=np.asarray(tensors["deviation"], dtype=np.float64),
        unit_rows=bool(tensors["unit_rows"]),
        layout=LAYOUTS[int(tensors["layout"])],
        white=float(tensors["white"]),
    )
