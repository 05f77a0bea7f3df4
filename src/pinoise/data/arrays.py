"""What is learned from training arrays so that later ones are read the same way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from pinoise.data.checks import check_finite, check_rows, numeric_samples
from pinoise.data.dataset import Array, Dataset, Part, RawArrays, Samples, Spans, row_slices
from pinoise.data.lazy import LazyArray
from pinoise.data.options import DEFAULTS, ReadOptions
from pinoise.data.table.labels import LabelEncoding, label_array, learn_targets, measurement_note
from pinoise.data.table.numbers import MARKED, fill_value
from pinoise.errors import UserError, counted


@dataclass(frozen=True)
class GapFilling:
    """What fills NaN in rows of numbers, and beside which features 1 in another one marks it.

    >>> filling = learn_filling(np.array([[1.0, np.nan], [3.0, 5.0]]), ReadOptions())
    >>> filling.apply(np.array([[np.nan, np.nan]])).tolist()
    [[2.0, 5.0, 1.0]]
    """

    fills: tuple[float, ...]  # one for each feature
    marked: tuple[int, ...]  # the numbers of such features

    def apply(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return rows without gaps, (n, features + marked features)."""
        gaps = np.isnan(x)
        filled = np.where(gaps, np.asarray(self.fills, dtype=x.dtype), x)
        return np.concatenate([filled, gaps[:, list(self.marked)].astype(x.dtype)], axis=1)

    def notes(self, raw: RawArrays) -> list[str]:
        """Return the note on the gaps of some rows, if there are any."""
        filled = sum(int(np.isnan(np.asarray(part.x, dtype=np.float64)).sum()) for part in raw.parts)
        marked = f", and marked those of {counted(len(self.marked), 'feature')}" if self.marked else ""
        return [f"filled {counted(filled, 'missing value')}{marked}"] if filled else []

    def undo(self, features: npt.NDArray[Any], x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return features as rows like ``x``, whose gaps stay gaps."""
        rows = features[:, : len(self.fills)]
        return np.where(np.isnan(x), np.nan, rows).astype(rows.dtype)


def learn_filling(x: Samples, options: ReadOptions) -> GapFilling | None:
    """Return what fills the gaps of training rows; None for samples without gaps, or where they are refused."""
    if options.missing == "error" or not has_gaps(x):
        return None
    dense = np.asarray(x)
    share = np.isnan(dense).mean(axis=0)
    known = (column[~np.isnan(column)].astype(np.float64) for column in dense.T)
    fills = [fill_value(present, options.missing) if len(present) else 0.0 for present in known]
    marked = np.flatnonzero((share >= MARKED) & (share < 1) & options.mark_missing)
    return GapFilling(tuple(fills), tuple(marked.tolist()))


def has_gaps(x: object) -> bool:
    """Whether something is an array of rows of numbers, in memory or a file, some of which are NaN.

    >>> has_gaps(np.array([[1.0, np.nan]])), has_gaps(np.eye(2)), has_gaps([[1.0, float("nan")]])
    (True, False, False)
    """
    if not isinstance(x, np.ndarray | LazyArray) or x.ndim != 2 or x.dtype.kind != "f":
        return False
    return any(bool(np.isnan(x[chunk]).any()) for chunk in row_slices(x))


@dataclass(frozen=True)
class ArrayEncoding:
    """The shape of a sample and the labels of the training arrays.

    >>> raw = RawArrays(Part(np.eye(3), y=np.array(["b", "a", "b"])))
    >>> data, encoding = learn_arrays(raw, name="toy", where="toy.npz")
    >>> data.train.y.tolist(), encoding.shape, encoding.labels.names
    ([1, 0, 1], (3,), ('a', 'b'))
    """

    spans: ClassVar[Spans] = ()  # an array does not say which features belong together

    shape: tuple[int, ...]
    sparse: bool = False
    feature_names: tuple[str, ...] | None = None
    labels: LabelEncoding | None = None
    first_index: int | None = None  # number of the first feature in an svmlight file
    gaps: GapFilling | None = None

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape of one sample as it is given, without features that mark gaps."""
        return self.shape if self.gaps is None else (len(self.gaps.fills),)

    def apply(self, raw: RawArrays, *, name: str, where: str, labelled: bool = True) -> Dataset:
        """Return later arrays as a data set like the training one; labels may be absent or left unread.

        Labels that training did not have make classes of their own.
        """
        groups = _group_numbers([part.groups for part in raw.parts], where)
        own, given = self.labels, _joined_labels(raw, where) if labelled else None
        if given is not None and not (own and own.covers(given)):
            own = learn_targets(given, where=f"{where}, labels", names=raw.class_names)
        labels = own if labelled else None
        train, *test = [self._part(part, group, labels, where) for part, group in zip(raw.parts, groups, strict=True)]
        notes = raw.notes if self.gaps is None else (*raw.notes, *self.gaps.notes(raw))
        classes = own.class_names if own else None
        return Dataset(name, train, test[0] if test else None, self.feature_names, classes, notes=notes)

    def _part(self, raw: Part, groups: Array | None, labels: LabelEncoding | None, where: str) -> Part:
        x = numeric_samples(raw.x, where=where)
        for what, values in (("labels", raw.y), ("groups", raw.groups)):
            if values is not None:
                check_rows(len(values), x.shape[0], what, where)
        if x.shape[1:] != self.raw_shape:
            raise UserError(f"{where} has samples of shape {x.shape[1:]}, but training had {self.raw_shape}.")
        x = _in_layout(x, sparse=self.sparse)
        if self.gaps is not None:
            x = self.gaps.apply(np.asarray(x, dtype=x.dtype if x.dtype.kind == "f" else np.float64))
        check_finite(x, self.feature_names, where=where)
        y = None if raw.y is None or labels is None else labels.targets(raw.y, where=f"{where}, labels")
        return replace(raw, x=x, y=y, groups=groups)


def learn_arrays(
    raw: RawArrays, *, name: str, where: str, options: ReadOptions = DEFAULTS
) -> tuple[Dataset, ArrayEncoding]:
    """Check arrays, number their labels, and return them with what later arrays need to be read the same way."""
    x = numeric_samples(raw.train.x, where=where)
    shape = tuple(int(size) for size in x.shape[1:])
    gaps = learn_filling(x, options)
    if raw.feature_names is not None and (len(shape) != 1 or len(raw.feature_names) != shape[0]):
        raise UserError(f"{where} has {len(raw.feature_names)} feature names for samples of shape {shape}.")
    labels = None
    if raw.train.y is not None:
        given, what = _joined_labels(raw, where), f"{where}, labels"
        labels = learn_targets(given, where=what, names=raw.class_names, regression=options.regression)
        raw = replace(raw, notes=(*raw.notes, *([] if options.regression else measurement_note(labels))))
    names = raw.feature_names
    if gaps is not None and gaps.marked:
        known = names or tuple(f"x{feature}" for feature in range(shape[0]))
        names = (*known, *(f"{known[feature]}=missing" for feature in gaps.marked))
        shape = (len(names),)
    encoding = ArrayEncoding(shape, bool(sp.issparse(x)), names, labels, raw.first_index, gaps)
    return encoding.apply(raw, name=name, where=where), encoding


def _joined_labels(raw: RawArrays, where: str) -> Any:
    """Return training and test labels as one Arrow array, None without any."""
    arrays = [label_array(part.y, where=f"{where}, labels") for part in raw.parts if part.y is not None]
    if not arrays:
        return None
    try:
        tables = [pa.table({"labels": array}) for array in arrays]
        return pa.concat_tables(tables, promote_options="permissive").column(0).combine_chunks()
    except pa.ArrowTypeError as error:
        kinds = " and test labels of type ".join(str(array.type) for array in arrays)
        raise UserError(f"{where}, labels: training labels are of type {kinds}.") from error


def _group_numbers(groups: list[Array | None], where: str) -> list[Array | None]:
    """Return whole numbers for groups, the same for the same group in every part."""
    given = [array for array in groups if array is not None]
    if not given:
        return [None for _ in groups]
    if not {array.dtype.kind for array in given} <= set("iuUS"):
        raise UserError(f"{where}: groups must be whole numbers or text.")
    if {array.dtype.kind for array in given} <= set("iu"):
        return [None if array is None else array.astype(np.int64) for array in groups]
    numbers = iter(np.split(np.unique(np.concatenate(given), return_inverse=True)[1], np.cumsum([*map(len, given)])))
    return [None if array is None else next(numbers) for array in groups]


def _in_layout(x: Samples, *, sparse: bool) -> Samples:
    if sp.issparse(x) == sparse:
        return x
    return sp.csr_array(np.asarray(x)) if sparse else cast("sp.csr_array[Any]", x).toarray()
