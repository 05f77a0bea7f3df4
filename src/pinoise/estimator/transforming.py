"""The embedding of samples in their own precision: dense, or sparse where dense rows would waste the memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from pinoise.data.dataset import Samples
from pinoise.data.rows import make_rows
from pinoise.data.sparse import uncentred
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed
from pinoise.networks import Embedding

WIDEST_DENSE = 10_000
"""Features beyond which the joined embedding of sparse rows stays sparse.

A dense row of so many takes 40 kB in single precision, however few entries it has. The rule looks at the features
alone, which are the same in training and later, in every fold and batch, so that all calls of a model give the same."""


def stays_sparse(embedding: Embedding, *, features: int, of_sparse: bool) -> bool:
    """Whether a model gives sparse embeddings.

    Args:
        embedding: the model's own.
        features: how many its samples have.
        of_sparse: whether it was fitted on sparse rows.
    """
    return of_sparse and features > WIDEST_DENSE and embedding.name == "joined"


def dense_embedding(embedding: Embedding, standardizer: Standardizer, x: Samples) -> npt.NDArray[Any]:
    """Return the embedding of samples, in their precision."""
    # In the precision of X, so that a row's embedding does not depend on the rows beside it.
    dtype = precision_of(x)
    rows = make_rows(x, standardizer, dtype=dtype)
    return embed(copy.deepcopy(embedding).to(dtype), rows, dtype=dtype)


def sparse_embedding(embedding: Embedding, standardizer: Standardizer, x: Samples) -> sp.csr_array:
    """Return the joined embedding of samples, in their precision, its raw block without centring."""
    dtype = precision_of(x)
    precise, rows = copy.deepcopy(embedding).to(dtype), sp.csr_array(x)

    def factor_and_learned(batch: Tensor) -> Tensor:
        return torch.cat([precise.raw_factor(batch), precise.learned(batch)], dim=1)

    found = embed(factor_and_learned, make_rows(rows, standardizer, dtype=dtype), dtype=dtype)
    raw = uncentred(rows, standardizer).multiply(found[:, :1])
    return sp.csr_array(sp.hstack([raw, sp.csr_array(found[:, 1:])], format="csr", dtype=found.dtype))


def precision_of(x: Samples) -> torch.dtype:
    """Return the precision in which samples are embedded: double for double, single for all others.

    >>> precision_of(np.zeros(1)), precision_of(np.zeros(1, dtype=np.float32)), precision_of(np.zeros(1, np.uint8))
    (torch.float64, torch.float32, torch.float32)
    """
    return torch.float64 if x.dtype == np.float64 else torch.float32
