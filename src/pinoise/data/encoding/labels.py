"""Labels of any type: the class numbers from 0 that stand for them, or the values of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.dataset import Labels, Targets
from pinoise.data.formats.arrow import first_true, is_number, is_text, label_array, text_of
from pinoise.data.messages import listed
from pinoise.errors import UserError

MANY_CLASSES = 64  # above it, labels that hardly ever repeat are a measurement or an identifier
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
            raise UserError(
                f"{where}: the label {written[row].as_py()!r} in data row {row + 1} is not one of the "
                f"training labels: {listed(self.values)}."
            )
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)


def learn_targets(
    labels: object, *, where: str, names: Sequence[str] | None = None, regression: bool | None = None
) -> LabelEncoding:
    """Return the encoding of labels that may be a measurement: if ``regression`` says so or, with None, their values.

    >>> learn_targets(np.arange(12) / 7, where="y").measured, learn_targets(np.arange(12), where="y").measured
    (True, False)
    """
    array = label_array(labels, where=where)
    if regression is None:
        regression = names is None and is_measurement(array)
    if not regression:
        return learn_labels(array, where=where, names=names)
    values = _values(array, where=where)
    if values.min() == values.max():
        raise UserError(f"{where}: every value is {values[0]:g}, but a measurement needs two or more.")
    return LabelEncoding((), (), text=False, measured=True)


def is_measurement(labels: object) -> bool:
    """Whether labels are numbers that nobody would use for classes.

    They are if some have fractions and more than 10 of them differ, or if more than 64 differ and each comes in fewer
    than 10 rows on average.

    >>> is_measurement(np.array([0.5, 1.0, 1.5])), is_measurement(np.arange(100)), is_measurement(np.arange(1000) % 100)
    (False, True, False)
    """
    array = label_array(labels, where="labels")
    if not is_number(array.type):
        return False
    distinct = len(pc.unique(array))
    fractions = pa.types.is_floating(array.type) and bool((np.asarray(array) % 1 != 0).any())
    return (fractions and distinct > _FEW_FRACTIONS) or (distinct > MANY_CLASSES and len(array) < _FEW_ROWS * distinct)


def measurement_note(labels: LabelEncoding | None, column: object = None) -> list[str]:
    """Return a note on labels that are taken for a measurement, and how to have classes; none for other labels."""
    if labels is None or not labels.measured:
        return []
    which = "the labels are" if column is None else f"the label {column!r} is"
    return [f"{which} taken for a measurement, scored by R² (--set data.regression=false makes every value a class)"]


def _values(array: pa.Array, *, where: str) -> npt.NDArray[np.float64]:
    """Return the finite numbers of an Arrow array."""
    if not is_number(array.type):
        example = text_of(array)[0].as_py()
        raise UserError(f"{where} holds {example!r}, which is no number: regression needs numbers.")
    values = np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise UserError(f"{where}: the value in data row {row + 1} is not finite.")
    return values


def learn_labels(labels: object, *, where: str, names: Sequence[str] | None = None) -> LabelEncoding:
    """Return the encoding of the classes found, sorted; with ``names``, labels are indices into them or the names."""
    array = label_array(labels, where=where)
    distinct = pc.unique(array)
    if len(distinct) < 2:
        raise UserError(f"{where}: every label is {text_of(distinct)[0].as_py()!r}, but classes need two or more.")
    if len(distinct) > MANY_CLASSES and len(distinct) > len(array) / 2:
        raise UserError(
            f"{where} has {len(distinct)} different labels in {len(array)} rows: that is a measurement or an "
            "identifier, not a class; choose another label column or none, or --regression for a measurement."
        )
    text = is_text(array.type)
    values = tuple(text_of(distinct.take(pc.sort_indices(distinct))).to_pylist())
    if names is None:
        return LabelEncoding(values=values, names=values, text=text)
    names = tuple(names)
    order = names if text else tuple(str(number) for number in range(len(names)))
    strange = [value for value in values if value not in set(order)]
    if strange:
        raise UserError(f"{where}: the label {strange[0]!r} has no entry among the {len(names)} class names.")
    return LabelEncoding(values=order, names=names, text=text)
