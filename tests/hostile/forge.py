"""What a hostile hand can do with files of ours: change them, and compute their checksums again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from pinoise.files import sealed
from pinoise.networks.embedding import read_stored, write_tensors
from pinoise.training.checkpoint import _seal

Edit = Callable[[Any], Any]


def tensors(path: Path, edit: Edit) -> None:
    """Change the tensors of a file of weights or of a checkpoint."""
    if path.suffix == ".ckpt":
        torch.save(edit(torch.load(path, weights_only=True)), path)
        _seal(path)
        return
    stored = read_stored(path)
    plain: Mapping[str, torch.Tensor] = edit({name: tensor.clone() for name, tensor in stored.tensors.items()})
    write_tensors(path, plain, stored.metadata)


def values(path: Path, edit: Edit) -> None:
    """Change the values of a file: the header of a model, or a record in JSON."""
    if path.suffix == ".json":
        record = json.loads(path.read_text())
        record.pop("sha256", None)
        changed = edit(record)
        path.write_text(json.dumps(sealed(changed) if isinstance(changed, dict) else changed))
        return
    stored = read_stored(path)
    write_tensors(path, stored.tensors, edit(stored.metadata))
