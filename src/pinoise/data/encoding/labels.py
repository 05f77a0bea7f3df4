"""Labels of any type: the class numbers from 0 that stand for them, or the values of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.dataset import Labels, Targets
from pinoise.data.formats.arrow import (
    first_true,
    is_number,
    is_text,
    label_array,
    label_cells,
    missing_label,
    no_labels,
    text_of,
)
from pinoise.data.messages import listed
from pinoise.errors import RowError, UserError

MANY_CLASSES = 64  # above it, labels that hardly ever repeat are a measurement or an identifier
MOST_LABELS = 1 << 20  # different labels that are told apart
_FEW_ROWS = 10  # of a class on average, below which many whole numbers are a measurement
_FEW_FRACTIONS = 10  # different numbers with fractions up to this are classes, such as grades in halves


@dataclass(frozen=True)
class LabelEncoding:
    """The labels of a training set in the order of their class numbers.

    >>> labels = learn_labels(np.array([1, -1, 1]), where="y")
    >>> labels.names, labels.encode(np.array([-1, 1]), where="y").tolist()
    (('-1', '1'), [0, 1])
    """

    values: tuple[str, ...]  # as text, so that 1 and 1.0 are the same label
    names: tuple[str, ...]  # what to call the classes
    text: bool  # the labels were text: a CSV must not guess another type for them
    measured: bool = False  # the labels are values of a measurement, so that there are no classes

    def covers(self, labels: object, *, where: str) -> bool:
        """Whether all labels are known, which those of a measurement always are.

        >>> LabelEncoding(("cat", "dog"), ("cat", "dog"), text=True).covers(["dog", "cow"], where="y")
        False
        """
        if self.measured:
            return True
        known = pa.array(self.values, pa.large_string())
        return bool(pc.all(pc.is_in(text_of(label_array(labels, where=where)), value_set=known)).as_py())

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, None for a measurement."""
        return None if self.measured else self.names

    def targets(self, labels: object, *, where: str) -> Targets:
        """Return class numbers, or the values of a measurement."""
        return (
            _values(label_array(labels, where=where), where=where)
            if self.measured
            else self.encode(labels, where=where)
        )

    def encode(self, labels: object, *, where: str) -> Labels:
        """Return class numbers; an unknown or missing label is an error that names its row."""
        written = text_of(label_array(labels, where=where))
        numbers = pc.index_in(written, value_set=pa.array(self.values, pa.large_string()))
        numbers = numbers.combine_chunks() if isinstance(numbers, pa.ChunkedArray) else numbers
        if numbers.null_count:
            row = first_true(pc.is_null(numbers))
            raise RowError(
                f"{where}: the label {written[row].as_py()!r} in data row ",
                row,
                f" is not one of the training labels: {listed(self.values)}.",
            )
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)


class LabelStudy:
    """What labels that come in pieces are: classes, or the values of a measurement.

    >>> study = LabelStudy()
    >>> for piece in (["b", "a"], ["c"]):
    ...     study.add(piece, where="y")
    >>> study.learned(where="y").names
    ('a', 'b', 'c')
    """

    def __init__(self) -> None:
        self.rows = 0
        self._first_missing = self._first_infinite = -1
        self._missing = 0
        self._distinct: Any = None  # the different labels, at most about ``MOST_LABELS``
        self._fractions = False

    def add(self, labels: object, *, where: str) -> None:
        """Take the labels of the next rows."""
        array = label_cells(labels, where=where)
        if array.null_count:
            if not self._missing:
                self._first_missing = self.rows + first_true(pc.is_null(array))
            self._missing += array.null_count
        present = array.drop_null()
        if pa.types.is_floating(array.type) and len(present):
            values = np.asarray(present)
            self._fractions = self._fractions or bool((values != np.trunc(values)).any())
            if self._first_infinite < 0 and not np.isfinite(values).all():
                self._first_infinite = self.rows + int(np.argmin(np.isfinite(values)))
        if self._distinct is None or len(self._distinct) <= MOST_LABELS:
            new = pc.unique(present)
            self._distinct = new if self._distinct is None else pc.unique(pa.concat_arrays([self._distinct, new]))
        self.rows += len(array)

    def known_to(self, labels: LabelEncoding) -> bool:
        """Whether an encoding knows all labels."""
        return labels.covers(self._distinct, where="labels")

    @property
    def is_measurement(self) -> bool:
        """Whether labels are numbers that nobody would use for classes.

        They are if some have fractions and more than 10 of them differ, or if more than 64 differ and each comes in
        fewer than 10 rows on average. So are more than a million different numbers.
        """
        distinct = len(self._distinct)
        if not is_number(self._distinct.type):
            return False
        rare = distinct > MANY_CLASSES and (self.rows < _FEW_ROWS * distinct or distinct > MOST_LABELS)
        return rare or (self._fractions and distinct > _FEW_FRACTIONS)

    def learned(
        self, *, where: str, names: Sequence[str] | None = None, regression: bool | None = None
    ) -> LabelEncoding:
        """Return the encoding of all labels, of a measurement if ``regression`` says so or, with None, their values."""
        self.check(where=where)
        if regression is None:
            regression = names is None and self.is_measurement
        if not regression:
            return self._classes(where, names)
        if not is_number(self._distinct.type):
            raise _no_number(text_of(self._distinct)[0].as_py(), where)
        if self._first_infinite >= 0:
            raise _not_finite(self._first_infinite, where)
        if len(self._distinct) < 2:
            value = self._distinct[0].as_py()
            raise UserError(f"{where}: every value is {value:g}, but a measurement needs two or more.")
        return LabelEncoding((), (), text=False, measured=True)

    def check(self, *, where: str) -> None:
        """Raise an error if there is no label, or if one is missing."""
        if not self.rows:
            raise no_labels(where)
        if self._missing:
            raise missing_label(self._first_missing, self._missing, where)

    def _classes(self, where: str, names: Sequence[str] | None) -> LabelEncoding:
        distinct = self._distinct
        if len(distinct) < 2:
            raise UserError(f"{where}: every label is {text_of(distinct)[0].as_py()!r}, but classes need two or more.")
        if len(distinct) > MANY_CLASSES and (len(distinct) > self.rows / 2 or len(distinct) > MOST_LABELS):
            many = f"more than {MOST_LABELS}" if len(distinct) > MOST_LABELS else len(distinct)
            raise UserError(
                f"{where} has {many} different labels in {self.rows} rows: that is a measurement or an "
                "identifier, not a class; choose another label column or none, or --regression for a measurement."
            )
        text = is_text(distinct.type)
        values = tuple(text_of(distinct.take(pc.sort_indices(distinct))).to_pylist())
        if names is None:
            return LabelEncoding(values=values, names=values, text=text)
        names = tuple(names)
        order = names if text else tuple(str(number) for number in range(len(names)))
        strange = [value for value in values if value not in set(order)]
        if strange:
            raise UserError(f"{where}: the label {strange[0]!r} has no entry among the {len(names)} class names.")
        return LabelEncoding(values=order, names=names, text=text)


def learn_targets(
    labels: object, *, where: str, names: Sequence[str] | None = None, regression: bool | None = None
) -> LabelEncoding:
    """Return the encoding of labels that may be a measurement: if ``regression`` says so or, with None, their values.

    >>> learn_targets(np.arange(12) / 7, where="y").measured, learn_targets(np.arange(12), where="y").measured
    (True, False)
    >>> learn_targets(np.array([0.5, 1.0, 1.5]), where="y").measured, learn_targets(np.arange(100), where="y").measured
    (False, True)
    """
    study = LabelStudy()
    study.add(labels, where=where)
    return study.learned(where=where, names=names, regression=regression)


def learn_labels(labels: object, *, where: str, names: Sequence[str] | None = None) -> LabelEncoding:
    """Return the encoding of the classes found, sorted; with ``names``, labels are indices into them or the names."""
    return learn_targets(labels, where=where, names=names, regression=False)


def measurement_note(labels: LabelEncoding | None, column: object = None) -> list[str]:
    """Return a note on labels that are taken for a measurement, and how to have classes; none for other labels."""
    if labels is None or not labels.measured:
        return []
    which = "the labels are" if column is None else f"the label {column!r} is"
    return [f"{which} taken for a measurement, scored by R² (--set data.regression=false makes every value a class)"]


def _values(array: pa.Array, *, where: str) -> npt.NDArray[np.float64]:
    """Return the finite numbers of an Arrow array."""
    if not is_number(array.type):
        raise _no_number(text_of(array)[0].as_py(), where)
    values = np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(values).all():
        raise _not_finite(int(np.argmin(np.isfinite(values))), where)
    return values


def _not_finite(row: int, where: str) -> RowError:
    return RowError(f"{where}: the value in data row ", row, " is not finite.")


def _no_number(example: str, where: str) -> UserError:
    return UserError(f"{where} holds {example!r}, which is no number: regression needs numbers.")
