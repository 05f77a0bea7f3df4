"""Labels of any type: the class numbers from 0 that stand for them, or the values of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.dataset import Labels, Targets
from pinoise.data.table.cells import are_all, are_codes, first_true, is_number, is_text, looks_like_number, text_of
from pinoise.errors import RowError, UserError, listed

MANY_CLASSES = 64  # above it, labels that hardly ever repeat are a measurement or an identifier
MOST_LABELS = 1 << 20  # different labels that are told apart
_FEW_ROWS = 10  # of a class on average, below which many whole numbers are a measurement
_FEW_FRACTIONS = 10  # different numbers with fractions up to this are classes, such as grades in halves


@dataclass(frozen=True)
class LabelEncoding:
    """The labels of a training set in the order of their class numbers.

    >>> labels = learn_targets(np.array([1, -1, 1]), where="y")
    >>> labels.names, labels.encode(np.array([-1, 1]), where="y").tolist()
    (('-1', '1'), [0, 1])
    """

    values: tuple[str, ...]  # as text, so that 1 and 1.0 are the same label
    names: tuple[str, ...]  # what to call the classes
    text: bool  # the labels were text: those of a CSV must not be taken for numbers
    measured: bool = False  # the labels are values of a measurement, so that there are no classes

    def __post_init__(self) -> None:
        differ = len(set(self.values)) == len(self.values) == len(self.names)
        if not differ or bool(self.values) == self.measured or (self.measured and self.text):
            raise ValueError("the labels are neither classes nor a measurement")

    def covers(self, labels: Any) -> bool:
        """Whether all labels of an Arrow array are known, which those of a measurement always are.

        >>> LabelEncoding(("cat", "dog"), ("cat", "dog"), text=True).covers(pa.array(["dog", "cow"]))
        False
        """
        known = pa.array(self.values, pa.large_string())
        return self.measured or bool(pc.all(pc.is_in(text_of(labels), value_set=known)).as_py())

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, None for a measurement."""
        return None if self.measured else self.names

    def targets(self, labels: object, *, where: str) -> Targets:
        """Return class numbers, or the values of a measurement."""
        if not self.measured:
            return self.encode(labels, where=where)
        array = label_array(labels, where=where)
        check_numbers(array, where=where)
        return np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)

    def encode(self, labels: object, *, where: str) -> Labels:
        """Return class numbers; an unknown or missing label is an error that names its row."""
        found = label_array(labels, where=where).dictionary_encode()  # as the text of all labels takes much memory
        written = text_of(found.dictionary)
        numbers = pc.index_in(written, value_set=pa.array(self.values, pa.large_string()))
        if (strange := first_true(pc.is_null(numbers))) >= 0:
            row = pc.index(found.indices, strange).as_py()
            rest = f" is not one of the training labels: {listed(self.values)}."
            raise RowError(f"{where}: the label {written[strange].as_py()!r} in data row ", row, rest)
        return np.asarray(numbers.take(found.indices).to_numpy(), dtype=np.int64)


def learn_targets(
    labels: object, *, where: str, names: Sequence[str] | None = None, regression: bool | None = None
) -> LabelEncoding:
    """Return the encoding of labels that may be a measurement: if ``regression`` says so or, with None, their values.

    >>> learn_targets(np.arange(12) / 7, where="y").measured, learn_targets(np.arange(12), where="y").measured
    (True, False)
    >>> learn_targets(np.array([0.5, 1.0, 1.5]), where="y").measured, learn_targets(np.arange(100), where="y").measured
    (False, True)
    """
    array = label_array(labels, where=where)
    distinct = pc.unique(array)
    if regression is None:
        regression = names is None and is_measurement(array, distinct)
    if not regression:
        return _classes(distinct, len(array), where, names)
    check_numbers(array, where=where)
    if len(distinct) < 2:
        raise UserError(f"{where}: every value is {distinct[0].as_py():g}, but a measurement needs two or more.")
    return LabelEncoding((), (), text=False, measured=True)


def is_measurement(array: Any, distinct: Any) -> bool:
    """Whether labels are numbers that nobody would use for classes.

    They are if some have fractions and more than 10 of them differ, or if more than 64 differ and each comes in
    fewer than 10 rows on average. So are more than a million different numbers.
    """
    if not is_number(distinct.type):
        return False
    many = len(distinct)
    values = np.asarray(distinct)
    fractions = bool((values != np.trunc(values)).any())
    rare = many > MANY_CLASSES and (len(array) < _FEW_ROWS * many or many > MOST_LABELS)
    return rare or (fractions and many > _FEW_FRACTIONS)


def _classes(distinct: Any, rows: int, where: str, names: Sequence[str] | None) -> LabelEncoding:
    if len(distinct) < 2:
        raise UserError(f"{where}: every label is {text_of(distinct)[0].as_py()!r}, but classes need two or more.")
    if len(distinct) > MANY_CLASSES and (len(distinct) > rows / 2 or len(distinct) > MOST_LABELS):
        what = f"{where} has {len(distinct)} different labels in {rows} rows"
        how = "choose another label column or none, or --regression for a measurement"
        raise UserError(f"{what}: that is a measurement or an identifier, not a class; {how}.")
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


def measurement_note(labels: LabelEncoding, column: object = None) -> list[str]:
    """Return a note on labels that are taken for a measurement, and how to have classes; none for other labels."""
    if not labels.measured:
        return []
    which = "the labels are" if column is None else f"the label {column!r} is"
    return [f"{which} taken for a measurement, scored by R² (--set data.regression=false makes every value a class)"]


def check_numbers(array: Any, *, where: str) -> None:
    """Raise an error unless labels are finite numbers."""
    if not is_number(array.type):
        raise UserError(f"{where} holds {text_of(array)[0].as_py()!r}, which is no number: regression needs numbers.")
    finite = np.isfinite(np.asarray(array, dtype=np.float64))
    if not finite.all():
        raise RowError(f"{where}: the value in data row ", int(np.argmin(finite)), " is not finite.")


def typed(text: Any) -> Any:
    """Return the cells of a text file as numbers or truth values where all of them are, else as they are.

    >>> typed(pa.array(["1", None])).to_pylist(), typed(pa.array(["True"])).to_pylist(), typed(pa.array(["01"])).type
    ([1, None], [True], DataType(string))
    """
    if not is_text(text.type):
        return text
    cells = text_of(text)
    if are_all(looks_like_number(cells)) and not are_codes(cells):
        whole = are_all(pc.match_substring_regex(cells, r"^[+-]?\d{1,18}$"))  # which double precision might round
        return pc.utf8_ltrim(cells, "+").cast(pa.int64()) if whole else cells.cast(pa.float64())
    lower = pc.utf8_lower(cells)
    return lower.cast(pa.bool_()) if are_all(pc.match_substring_regex(lower, "^(true|false)$")) else text


def label_array(labels: object, *, where: str) -> Any:
    """Return labels as an Arrow array of text, integers or floats; a missing one is an error that names its row."""
    if isinstance(labels, np.ndarray):
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise UserError(f"{where} has shape {labels.shape}: labels are one value for each row.")
    try:
        array = labels if isinstance(labels, pa.ChunkedArray) else pa.array(labels, from_pandas=True)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        array = array.cast(pa.large_string()) if pa.types.is_binary(array.type) else array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        what = "mixes labels of different types, or is no text in UTF-8"
        raise UserError(f"{where} {what}: make them all text or all numbers.") from error
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        array = array.cast(pa.float64(), safe=False)
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)
    elif is_text(array.type):
        array = text_of(array)
    elif not (pa.types.is_integer(array.type) or pa.types.is_boolean(array.type) or pa.types.is_null(array.type)):
        raise UserError(f"{where} holds labels of type {array.type}: they must be text, numbers or true / false.")
    if len(array) == 0:
        raise UserError(f"{where} holds no labels.")
    if array.null_count:
        how = "fill in or remove these rows, or learn without labels"
        rest = f" is missing ({array.null_count} missing in all): {how}."
        raise RowError(f"{where}: the label of data row ", first_true(pc.is_null(array)), rest)
    return array
