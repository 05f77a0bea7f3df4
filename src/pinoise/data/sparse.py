"""Standardised features that stay sparse: without the centring, which would fill every zero."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from pinoise.data.moments import canonical, row_divisors
from pinoise.data.standardizer import Standardizer


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
    inverse = (1 / np.where(standardizer.live, standardizer.scale, np.inf))[columns]
    if standardizer.tails is None:
        shifted = values * inverse
    else:
        middle = standardizer.mean[columns]
        of_zero = np.arcsinh(-middle * inverse)
        scale = np.where(standardizer.live, standardizer.tails.scale, np.inf)[columns]
        shifted = (np.arcsinh((values - middle) * inverse) - of_zero) / scale
    return sp.csr_array((shifted, columns, rows.indptr), shape=rows.shape)
