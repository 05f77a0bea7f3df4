"""The data sets of a suite that are here, and a smaller draw of a large one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pinoise.data.catalogue import locate
from pinoise.data.dataset import Dataset, Part
from pinoise.errors import UserError
from pinoise.experiments.recipes import Suite


def present_sources(suite: Suite) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sets of a suite that can be read now without a download, and those that cannot.

    >>> from pinoise.experiments.recipes import find_suite
    >>> present, absent = present_sources(find_suite("vectors"))
    >>> present[:3], len(present) + len(absent)
    (('digits', 'wine', 'breast_cancer'), 20)
    """
    here = {source: all(locate(source).values()) for source in suite.sources}
    return tuple(source for source in here if here[source]), tuple(source for source in here if not here[source])


def sample_rows(data: Dataset, *, train: int, test: int, seed: int = 0) -> Dataset:
    """Return a data set with fewer training and test rows, drawn at random and kept in their order.

    Labels are not looked at. The rows depend on the seed and on the sizes only, and a larger draw holds the smaller
    ones. A set that is small enough is returned as it is.

    >>> data = Dataset("toy", train=Part(np.arange(8.0)[:, None]), test=Part(np.arange(4.0)[:, None]))
    >>> small = sample_rows(data, train=3, test=4)
    >>> len(small.train), len(small.test), small.notes
    (3, 4, ('3 of 8 training rows were drawn at random (seed 0)',))
    """
    if train < 2 or test < 1:
        raise UserError(
            f"{train} training and {test} test rows were asked for: learning by contrast needs at least 2, a score 1."
        )
    cut, train_note = _drawn(data.train, train, "training", [seed, 0])
    cut_test, test_note = (None, "") if data.test is None else _drawn(data.test, test, "test", [seed, 1])
    notes = [note for note in (train_note, test_note) if note]
    return replace(data, train=cut, test=cut_test, notes=(*data.notes, *notes)) if notes else data


def shrink_images(data: Dataset, *, most: int) -> Dataset:
    """Return a data set with smaller images, of at most ``most`` pixels a side; each pixel is the mean of a block.

    >>> data = Dataset("toy", train=Part(np.arange(16.0).reshape(1, 4, 4, 1)))
    >>> shrink_images(data, most=2).train.x[0, :, :, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    if len(data.shape) != 3 or max(data.shape[:2]) <= most:
        return data
    factor = -(-max(data.shape[:2]) // most)
    if data.shape[0] % factor or data.shape[1] % factor:
        return data
    note = f"images were shrunk from {data.shape[0]} × {data.shape[1]} pixels by means of {factor} × {factor}"
    parts = [None if part is None else _pooled(part, factor) for part in (data.train, data.test)]
    assert parts[0] is not None  # every data set has a training part
    return replace(data, train=parts[0], test=parts[1], notes=(*data.notes, note))


def _pooled(part: Part, factor: int) -> Part:
    x = np.asarray(part.x)
    n, height, width, channels = x.shape
    blocks = x.reshape(n, height // factor, factor, width // factor, factor, channels)
    return replace(part, x=blocks.mean(axis=(2, 4), dtype=np.float32))


def _drawn(part: Part, rows: int, side: str, seed: list[int]) -> tuple[Part, str]:
    n = len(part)
    if n <= rows:
        return part, ""
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:rows])
    return part.take(chosen), f"{rows} of {n} {side} rows were drawn at random (seed {seed[0]})"
