"""Standardisation: the units in which encoders see samples and in which noise is measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Samples, Spans, row_slices
from pinoise.data.layout import AS_IS, ImageLayout, image_layout, to_image_layout, undo_image_layout
from pinoise.data.lazy import LazyArray, MappedRows
from pinoise.data.moments import (
    VANISHING,
    Tails,
    beside,
    canonical,
    dense,
    feature_moments,
    has_heavy_tails,
    local_units,
    measure_tails,
    one_pass_moments,
    robust_units,
    row_divisors,
    row_norms,
)
from pinoise.errors import UserError, unknown_choice

Scaling = Literal["auto", "features", "compressed", "global", "rows", "channels"]
SCALING: Scaling = "auto"
"""What samples are divided by once centred: each feature's deviation, after which heavy tails may be compressed; one
number for all features; that number after every row was brought to length 1; or one number for each channel of images,
which then have their channels first. ``auto`` chooses by the samples (``auto_scaling``)."""

# A feature that varies by less than a few roundings of its own size is constant.
_DEAD_SHARE = 10 * np.finfo(np.float64).eps

# Where columns that are mostly filled make up this share of the squared length of rows, the samples are a table: its
# zeros come from categories, which its numbers would drown. Words of a text are mostly absent, even common ones.
_MOST = 0.9


@dataclass(frozen=True)
class Standardizer:
    """Centre and scale of every feature of the training samples; ``scale`` is 0 for dead features.

    >>> s = Standardizer.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> s.scale.tolist(), s.apply(np.array([[1.0, 5.0], [3.0, 7.0]])).tolist()
    ([1.0, 0.0], [[-1.0, 0.0], [1.0, 0.0]])

    Under ``global`` and ``rows`` a feature that varies little in the data still varies little once standardised:

    >>> s = Standardizer.fit(np.array([[1.0, 0.0], [1.0, 14.0], [3.0, 0.0], [3.0, 14.0]]), scaling="global")
    >>> s.scale.tolist(), s.deviation.tolist()
    ([5.0, 5.0], [0.2, 1.4])

    Under ``compressed`` a logarithm brings heavy tails nearer (``pinoise.data.moments``):

    >>> x = np.append(np.arange(99.0), 10_000.0)[:, None]
    >>> plain, compressed = (Standardizer.fit(x, scaling=name).apply(x) for name in ("features", "compressed"))
    >>> plain[[0, 98, 99], 0].round(1).tolist(), compressed[[0, 98, 99], 0].round(1).tolist()
    ([-0.1, -0.1, 9.9], [-1.3, 1.1, 6.7])

    Under ``channels`` images have one centre and scale for each channel, and leave with their channels first:

    >>> s = Standardizer.fit(np.array([[[[0, 1]] * 5] * 5, [[[4, 1]] * 5] * 5], dtype=np.uint8), scaling="channels")
    >>> s.shape, s.mean[:, 0, 0].tolist(), s.scale[:, 0, 0].tolist()
    ((2, 5, 5), [2.0, 1.0], [2.0, 0.0])
    """

    # (*shape): mean and deviation, of rows of length 1 if unit_rows; robust ones if tails are compressed
    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    # (*shape), the standard deviation once standardised; where not given, 1 for live features and 0 for dead ones
    deviation: npt.NDArray[np.float64] = None  # type: ignore[assignment]
    unit_rows: bool = False  # whether every row is divided by its norm first
    layout: ImageLayout = AS_IS  # of the images in the data; standardised ones have their channels first
    white: float = 1.0  # the largest value that a pixel of an image can have; black is 0
    tails: Tails | None = None  # how values are standardised again once their tails are compressed, if they are
    spans: Spans = ()  # columns of several features, such as a category's: each shares one unit, and has no tails

    def __post_init__(self) -> None:
        if self.deviation is None:
            object.__setattr__(self, "deviation", self.live.astype(np.float64))
        for name in ("mean", "scale", "deviation"):
            # As they are read from a file, so that sums over them round the same when a run is resumed.
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))

    @classmethod
    def fit(cls, x: Samples, *, scaling: Scaling = SCALING, spans: Spans = ()) -> Standardizer:
        """Learn from samples in passes over bounded chunks, which keeps precision and saves memory.

        The features of a span share one unit, so that the variance of the whole column is that of one number:

        >>> one_hot = np.eye(3)[[0, 0, 1, 2]]
        >>> Standardizer.fit(one_hot, spans=((0, 3),)).apply(one_hot).var(axis=0).sum().round(6).item()
        1.0
        """
        if scaling not in get_args(Scaling):
            raise unknown_choice("scaling", scaling, get_args(Scaling))
        if scaling == "auto":
            scaling = auto_scaling(_numbers(x, spans))
        if scaling == "channels":
            return cls._fit_channels(x)
        unit_rows = scaling == "rows"
        if unit_rows and spans:
            raise UserError("scaling 'rows' is for counts of one kind, and this table has categories: choose another.")
        mean, square = feature_moments(x, unit_rows=unit_rows)
        deviation = np.sqrt(square)
        live = deviation > np.maximum(_DEAD_SHARE * np.abs(mean), VANISHING)
        deviation = np.where(live, deviation, 0.0)
        whole = _whole_deviation(deviation, spans)
        if scaling == "compressed":
            middle, scale = robust_units(x, mean, deviation)
            several = _several(mean.shape, spans)
            middle, scale = np.where(several, mean, middle), np.where(several, whole, scale)
            return cls(mean=middle, scale=scale, tails=measure_tails(x, middle, scale), spans=spans)
        if scaling == "features" or not live.any():
            return cls(mean=mean, scale=whole, unit_rows=unit_rows, spans=spans)
        common = np.sqrt(square[live].sum() / (live.sum() - _repeated(live, spans)))
        scale = np.where(live, common, 0.0)
        return cls(mean=mean, scale=scale, deviation=whole / common, unit_rows=unit_rows, spans=spans)

    @classmethod
    def _fit_channels(cls, x: Samples) -> Standardizer:
        layout = image_layout(tuple(x.shape[1:]))
        mean, square = (to_image_layout(each[None], layout)[0] for each in one_pass_moments(x))  # (C, H, W)
        centre = mean.mean(axis=(1, 2), keepdims=True)
        common = np.sqrt((square + np.square(mean - centre)).mean(axis=(1, 2), keepdims=True))
        common = np.where(common > np.maximum(_DEAD_SHARE * np.abs(centre), VANISHING), common, 0.0)
        return cls(
            mean=np.broadcast_to(centre, mean.shape).copy(),
            # A pixel that never varies in training gets no noise, but keeps its value: crops move other pixels there.
            scale=np.broadcast_to(common, mean.shape).copy(),
            deviation=np.divide(np.sqrt(square), common, out=np.zeros_like(mean), where=common > 0),
            layout=layout,
            white=_white(x),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one standardised sample."""
        return tuple(self.mean.shape)

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape of one sample in the layout of the data."""
        return undo_image_layout(np.empty((1, *self.shape)), self.layout).shape[1:]

    @property
    def live(self) -> npt.NDArray[np.bool_]:
        """Which features vary in the training samples."""
        return self.scale > 0

    @property
    def inverse_scale(self) -> npt.NDArray[np.float64]:
        """1 / scale, 0 for dead features."""
        return 1 / np.where(self.live, self.scale, np.inf)

    def units(self, x: Samples) -> npt.NDArray[np.float64]:
        """Return the size of a standardised 1 in the units of the data, (*shape), or of each sample where that differs.

        Of rows of length 1, the units are those of the scaled rows.
        """
        if self.tails is None:
            return self.scale
        return np.where(self.several, self.scale, local_units(x, self.mean, self.scale, self.tails))

    def apply(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return (x − mean) / scale, 0 for dead features, of rows brought to length 1 if ``unit_rows``.

        If that is part of the scaling, tails are compressed, and the features standardised again.
        """
        rows = x / row_divisors(x) if self.unit_rows else x
        if self.layout != AS_IS:
            rows = to_image_layout(x, self.layout)
        standard: npt.NDArray[Any] = (rows - self.mean) * self.inverse_scale
        if self.tails is None:
            return standard
        centre, scale = self.tails
        nearer = (np.arcsinh(standard) - centre) / np.where(self.live, scale, np.inf)
        return np.asarray(np.where(self.several, standard, nearer) if self.spans else nearer)

    @property
    def several(self) -> npt.NDArray[np.bool_]:
        """Which features are one of several of their column, such as the values of a category."""
        return _several(self.shape, self.spans)

    def undo(self, x: npt.NDArray[Any], norms: npt.NDArray[np.float64] | None = None) -> npt.NDArray[Any]:
        """Return standardised samples to the units of the data; a dead feature gets its constant back.

        Only with ``unit_rows`` are the ``norms`` (n,) of the original rows used. Without them rows keep length 1.
        """
        standard = x
        if self.tails is not None:
            standard = np.where(self.several, x, np.sinh(x * self.tails.scale + self.tails.mean))
        original: npt.NDArray[Any] = standard * self.scale + self.mean
        if self.layout != AS_IS:
            return undo_image_layout(original, self.layout)
        return original if norms is None or not self.unit_rows else original * beside(norms, x)

    norms = staticmethod(row_norms)


def _several(shape: tuple[int, ...], spans: Spans) -> npt.NDArray[np.bool_]:
    """Return which features are one of several of their column."""
    several = np.zeros(shape, dtype=np.bool_)
    for start, stop in spans:
        several[start:stop] = True
    return several


def _numbers(x: Samples, spans: Spans) -> Samples:
    """Return the features that are a column of their own."""
    if not spans:
        return x
    single = np.flatnonzero(~_several(x.shape[1:], spans))
    if not isinstance(x, LazyArray):
        return x[:, single]
    return MappedRows(x, partial(np.take, indices=single, axis=1), sample_shape=single.shape)


def _whole_deviation(deviation: npt.NDArray[np.float64], spans: Spans) -> npt.NDArray[np.float64]:
    """Return the deviation of every feature's column, the root of its total variance; 0 for dead features."""
    whole = deviation.copy()
    for start, stop in spans:
        whole[start:stop] = np.where(deviation[start:stop] > 0, np.linalg.norm(deviation[start:stop]), 0.0)
    return whole


def _repeated(live: npt.NDArray[np.bool_], spans: Spans) -> int:
    """Return how many live features are not the first of their column."""
    return sum(max(0, int(live[start:stop].sum()) - 1) for start, stop in spans)


def auto_scaling(x: Samples) -> Scaling:
    """Return the scaling that suits samples: ``rows`` where 90 % are zeros, ``global`` for 0 and 1, else by feature.

    Dividing a rare word or a rare bit by its own small deviation would make it the largest of all values. A single
    feature is always divided by its own: of a row of one number, length 1 leaves only the sign. So are those of a table
    whose zeros come from categories: it has numbers below 0, or columns that are filled and make up most of a row.
    Scaling by feature is ``compressed`` where half of the features have heavy tails, and ``features`` elsewhere.

    >>> auto_scaling(np.eye(10)), auto_scaling(np.eye(9)), auto_scaling(2 * np.eye(9))
    ('rows', 'global', 'features')
    >>> auto_scaling(np.random.default_rng(0).lognormal(0, 2, (1000, 3)))
    'compressed'
    """
    if 0 in x.shape[1:]:  # a table of categories alone
        return "features"
    scaling = _scaling_by_zeros(x)
    return "compressed" if scaling == "features" and has_heavy_tails(x) else scaling


def _scaling_by_zeros(x: Samples) -> Scaling:
    total = int(np.prod(x.shape, dtype=np.int64))
    if total == x.shape[0]:
        return "features"
    filled, binary = 0, True
    for values in [canonical(x).data] if isinstance(x, sp.csr_array) else (x[chunk] for chunk in row_slices(x)):
        filled += int(np.count_nonzero(values))
        binary = binary and bool(np.isin(values, (0, 1)).all())
        if not binary and 10 * filled > total:
            return "features"  # whatever the rest of a long file holds
    if 10 * filled <= total:
        return "features" if not binary and _is_table(x) else "rows"
    return "global" if binary else "features"


def _is_table(x: Samples) -> bool:
    """Whether samples that are mostly zeros are a table with categories rather than counts of one kind."""
    negative, counts, lengths = False, np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    for chunk in row_slices(x):
        rows = dense(x[chunk]) / row_divisors(x[chunk])
        negative = negative or bool((rows < 0).any())
        counts += np.count_nonzero(rows, axis=0)
        lengths += np.square(rows).sum(axis=0)
    return negative or bool(lengths[2 * counts >= x.shape[0]].sum() > _MOST * lengths.sum())


def _white(x: Samples) -> float:
    if x.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(x.dtype).max)
    # Wider integers and floats can hold far more than pixels.
    largest = max(float(np.asarray(x[chunk]).max()) for chunk in row_slices(x))
    return next((white for white in (1.0, 255.0, 65535.0) if largest <= white), largest)
