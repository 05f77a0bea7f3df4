"""A standardiser, which holds the units of samples, as tensors in a file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pinoise.data.dataset import Spans
from pinoise.data.layout import AS_IS, LAYOUTS
from pinoise.data.moments import Tails
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.networks import read_tensors

_TYPES = {
    **dict.fromkeys(("mean", "scale", "deviation", "white"), torch.float64),
    **{"unit_rows": torch.bool, "layout": torch.int64},
}
_OF_COLUMNS = {"spans": torch.int64}  # (columns, 2), only where columns became several features
_OF_TAILS = {"tails_mean": torch.float64, "tails_scale": torch.float64}  # only where tails are compressed


def read_standardizer(path: Path) -> Standardizer:
    """Read the standardiser of a run folder."""
    return standardizer_from(read_tensors(path), where=path)


def standardizer_tensors(standardizer: Standardizer) -> dict[str, Tensor]:
    """Return a standardiser as tensors to save."""
    tails = () if standardizer.tails is None else zip(_OF_TAILS, standardizer.tails, strict=True)
    spans = {"spans": torch.tensor(standardizer.spans)} if standardizer.spans else {}
    return {
        **spans,
        **{name: torch.from_numpy(value) for name, value in tails},
        "mean": torch.from_numpy(standardizer.mean),
        "scale": torch.from_numpy(standardizer.scale),
        "deviation": torch.from_numpy(standardizer.deviation),
        "unit_rows": torch.tensor(standardizer.unit_rows),
        "layout": torch.tensor(LAYOUTS.index(standardizer.layout)),
        "white": torch.tensor(standardizer.white, dtype=torch.float64),
    }


def standardizer_from(tensors: Mapping[str, Tensor], *, where: object) -> Standardizer:
    """Return the standardiser from saved tensors. Refuse tensors that no standardiser has.

    Args:
        tensors: what ``standardizer_tensors`` returned.
        where: the file, for messages.

    >>> standardizer_from({"mean": torch.zeros(2, dtype=torch.float64)}, where="s.safetensors")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: s.safetensors has no sound tensor 'scale' of a standardiser: the file is damaged.
    """
    compressed = not _OF_TAILS.keys().isdisjoint(tensors)
    types = {**_TYPES, **(_OF_TAILS if compressed else {}), **(_OF_COLUMNS if "spans" in tensors else {})}
    for name, dtype in types.items():
        tensor = tensors.get(name)
        if tensor is None or tensor.dtype != dtype or not tensor.numel() or not bool(tensor.isfinite().all()):
            raise _unsound(name, where)
    for name in tensors.keys() - types.keys():
        raise _unsound(name, where)
    mean, scale, deviation = (np.asarray(tensors[name]) for name in ("mean", "scale", "deviation"))
    for name in ("unit_rows", "layout", "white"):
        if tensors[name].shape != ():
            raise _unsound(name, where)
    unit_rows, layout, white = bool(tensors["unit_rows"]), int(tensors["layout"]), float(tensors["white"])
    sound = {
        "scale": scale.shape == mean.shape and bool((scale >= 0).all()),
        "deviation": deviation.shape == mean.shape and bool((deviation >= 0).all()),
        "mean": mean.ndim > 0,
        "layout": layout in range(len(LAYOUTS)) and (LAYOUTS[layout] == AS_IS or mean.ndim == 3),
        "white": white > 0,
    }
    tails = Tails(*(np.asarray(tensors[name]) for name in _OF_TAILS)) if compressed else None
    if tails is not None:
        sound["tails_mean"] = tails.mean.shape == mean.shape
        sound["tails_scale"] = tails.scale.shape == mean.shape and bool(((tails.scale > 0) == (scale > 0)).all())
    spans = _spans_from(tensors.get("spans"), mean.shape)
    if spans is None:
        sound["spans"] = False
    for name, holds in sound.items():
        if not holds:
            raise _unsound(name, where)
    return Standardizer(mean, scale, deviation, unit_rows, LAYOUTS[layout], white, tails, spans or ())


def _spans_from(stored: Tensor | None, shape: tuple[int, ...]) -> Spans | None:
    """Return the columns of several features, or None for what no table has."""
    if stored is None:
        return ()
    if len(shape) != 1 or stored.ndim != 2 or stored.shape[1] != 2:
        return None
    ends = [0, *stored.flatten().tolist(), shape[0]]
    in_order = all(a <= b for a, b in itertools.pairwise(ends)) and bool((stored[:, 1] - stored[:, 0] > 1).all())
    return tuple((start, stop) for start, stop in stored.tolist()) if in_order else None


def _unsound(name: str, where: object) -> UserError:
    return UserError(f"{where} has no sound tensor {name!r} of a standardiser: the file is damaged.")
