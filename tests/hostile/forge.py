"""What a hostile hand can do with files of ours: change them, and compute their checksums again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from pinoise.networks.embedding import read_stored, write_tensors

Edit = Callable[[Any], Any]


def tensors(path: Path, edit: Edit) -> None:
    """Change the tensors of a file of weights or of a checkpoint."""
    if path.suffix == ".ckpt":
        torch.save(edit(torch.load(path, weights_only=True)), path)
        return
    stored = read_stored(path)
    plain: Mapping[str, torch.Tensor] = edit({name: tensor.clone() for name, tensor in stored.tensors.items()})
    write_tensors(path, plain, stored.metadata)


def values(path: Path, edit: Edit) -> None:
    """Change the values of a file: the header of a model, or a record in JSON."""
    if path.suffix == ".json":
        path.write_text(json.dumps(edit(json.loads(path.read_text()))))
        return
    stored = read_stored(path)
    write_tensors(path, stored.tensors, edit(stored.metadata))
