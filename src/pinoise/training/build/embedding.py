"""The embedding users get, on an encoder: measured on training rows, or from its stored units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from pinoise.choices import EmbeddingName
from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.networks import Blocks, Embedding, check_finite_weights
from pinoise.training.config import Settings, embedding_of

_MEASURED_ROWS, _MEASURED_BATCH = 2048, 128  # training rows that set the units of an embedding


def build_embedding(encoder: nn.Module, name: EmbeddingName, standardizer: Standardizer, rows: Rows) -> Embedding:
    """Return an embedding on an encoder, in units of at most 2,048 training rows, evenly spaced."""
    size = min(len(rows), _MEASURED_ROWS)
    batches = (rows[some] for some in (torch.arange(size) * len(rows) // size).split(_MEASURED_BATCH))
    return Embedding.measured(encoder, batches, name=name, unit_rows=standardizer.unit_rows).eval()


def restore_embedding(
    encoder: nn.Module, settings: Settings, standardizer: Standardizer, tensors: Mapping[str, Tensor]
) -> Embedding:
    """Return an embedding from its stored units. Units that do not fit raise torch's RuntimeError."""
    width: Any = encoder.out_features
    empty = Blocks(torch.zeros(width), torch.zeros(()))
    if tensors.keys() != empty._asdict().keys():
        raise RuntimeError("the units of the embedding are not there")
    blocks = empty._replace(**tensors)
    if any(stored.shape != own.shape or stored.dtype != own.dtype for stored, own in zip(blocks, empty, strict=True)):
        raise RuntimeError("the units of the embedding have another shape")
    check_finite_weights(tensors, where="the embedding")
    return Embedding(encoder, name=embedding_of(settings), blocks=blocks, unit_rows=standardizer.unit_rows).eval()


def embedding_tensors(embedding: Embedding) -> dict[str, Tensor]:
    """Return the units of an embedding as tensors to save."""
    return embedding.blocks._asdict()
