"""The split of sets whose publisher has none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pinoise.data.dataset import Labels

Rows = npt.NDArray[np.int64]


def stratified_split(y: Labels) -> tuple[Rows, Rows]:
    """Return the rows of a stratified 80/20 split, always the same, each part in the order of the source.

    >>> train, test = stratified_split(np.repeat([0, 1], [10, 5]))
    >>> len(train), np.bincount(np.repeat([0, 1], [10, 5])[test]).tolist()
    (12, [2, 1])
    """
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=y)
    return np.sort(train).astype(np.int64), np.sort(test).astype(np.int64)
