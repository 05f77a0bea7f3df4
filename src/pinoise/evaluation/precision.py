"""The embedding of samples in their own precision: dense, or sparse where dense rows would waste the memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from pinoise.data.dataset import Samples
from pinoise.data.moments import Tails, canonical, row_divisors
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation.embedding import embed
from pinoise.modes import own_modes
from pinoise.networks import Embedding

WIDEST_DENSE = 10_000
"""Features beyond which the joined embedding of sparse rows stays sparse.

A dense row of so many takes 40 kB in single precision, however few entries it has. The rule looks at the features
alone, which are the same in training and later, in every fold and batch, so that all calls of a model give the same."""


@own_modes()
def precise_embedding(embedding: Embedding, standardizer: Standardizer, x: Samples, *, of_sparse: bool) -> Any:
    """Return the embedding of samples, in their precision: dense, or a SciPy ``csr_array`` without centring.

    Args:
        embedding: the model's own.
        standardizer: the units of the samples.
        x: samples.
        of_sparse: whether the model was fitted on sparse rows.
    """
    # In the precision of x, so that a row's embedding does not depend on the rows beside it.
    dtype = torch.float64 if x.dtype == np.float64 else torch.float32
    precise = copy.deepcopy(embedding).to(dtype)
    if not of_sparse or standardizer.mean.size <= WIDEST_DENSE or embedding.name != "joined":
        return embed(precise, make_rows(x, standardizer, dtype=dtype), dtype=dtype)
    rows = sp.csr_array(x)

    def factor_and_learned(batch: Tensor) -> Tensor:
        return torch.cat([precise.raw_factor(batch), precise.learned(batch)], dim=1)

    found = embed(factor_and_learned, make_rows(rows, standardizer, dtype=dtype), dtype=dtype)
    raw = uncentred(rows, standardizer).multiply(found[:, :1])
    return sp.csr_array(sp.hstack([raw, sp.csr_array(found[:, 1:])], format="csr", dtype=found.dtype))


def uncentred(x: sp.csr_array, standardizer: Standardizer) -> sp.csr_array:
    """Return s(x) − s(0) for standardised samples s(x), (n, d): 0 stays 0, and all rows are shifted alike.

    >>> x = sp.csr_array(np.array([[0.0, 3.0], [4.0, 1.0]]))
    >>> s = Standardizer.fit(x, scaling="features")
    >>> uncentred(x, s).toarray().tolist(), (s.apply(x.toarray()) - s.apply(np.zeros((1, 2)))).tolist()
    ([[0.0, 3.0], [2.0, 1.0]], [[0.0, 3.0], [2.0, 1.0]])
    """
    rows = canonical(x).astype(np.float64)
    values, columns = rows.data, rows.indices
    if standardizer.unit_rows:
        values = values / np.repeat(row_divisors(rows).ravel(), np.diff(rows.indptr))
    tails = standardizer.tails and Tails(*(part[columns] for part in standardizer.tails))
    at = Standardizer(standardizer.mean[columns], standardizer.scale[columns], tails=tails)  # of every stored value
    shifted = at.apply(values) - at.apply(np.zeros_like(values))
    return sp.csr_array((shifted, columns, rows.indptr), shape=rows.shape)
