"""Small functions of Arrow arrays that readers and encodings share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.messages import damaged
from pinoise.errors import RowError, UserError

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text.

    >>> is_text(pa.large_string()), is_text(pa.int8())
    (True, False)
    """
    return str(kind) in ("string", "large_string", "string_view")


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers; truth values and times do not count."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def first_true(mask: Any) -> int:
    """Return the position of the first true value, -1 without one.

    >>> first_true(pa.array([False, None, True]))
    2
    """
    return int(pc.index(mask, True).as_py())


def first_missing(column: Any) -> int:
    """Return the position of the first cell that is null or NaN, -1 without one.

    >>> first_missing(pa.array([1.0, float("nan"), None])), first_missing(pa.array(["a"]))
    (1, -1)
    """
    floating = pa.types.is_floating(column.type)
    return first_true(pc.is_null(column, nan_is_null=True)) if floating or column.null_count else -1


def text_of(column: Any) -> Any:
    """Return a column's cells as trimmed text; missing and empty cells are null.

    >>> text_of(pa.array([1.0, None, 2.5])).to_pylist(), text_of(pa.array([" a", "", "b"])).to_pylist()
    (['1', None, '2.5'], ['a', None, 'b'])
    """
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    text = column.cast(pa.large_string())
    if is_text(column.type) or pa.types.is_dictionary(column.type):
        text = pc.utf8_trim_whitespace(text)
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    return text


def looks_like_number(text: Any) -> Any:
    """Return for each cell of text whether it is written as a number.

    >>> looks_like_number(pa.array(["12", "-1e3", "12a", "?", None])).to_pylist()
    [True, True, False, False, None]
    """
    return pc.match_substring_regex(text, NUMBER)


def checked(table: Any, *, where: str | Path) -> Any:
    """Return a table whose columns hold what their types say; text that is not UTF-8 is an error that names its column.

    It costs a pass over the text.
    """
    for name, column in zip(table.column_names, table.itercolumns(), strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                raise _not_utf8(f"{where}: column {name!r}") from error
            raise damaged(f"{where}: column {name!r}", error) from error
    return table


def _decoded(labels: npt.NDArray[np.bytes_], where: str) -> npt.NDArray[np.str_]:
    try:
        return np.char.decode(labels, "utf-8")
    except UnicodeDecodeError:
        for row, label in enumerate(labels.tolist()):
            try:
                label.decode("utf-8")
            except UnicodeDecodeError as error:
                raise _not_utf8(f"{where}: the label {label!r} of data row {row + 1}") from error
        raise


def _not_utf8(what: str) -> UserError:
    return UserError(f"{what} is not text in UTF-8: save it in UTF-8, or leave it out.")


def label_array(labels: object, *, where: str) -> Any:
    """Return labels as an Arrow array of text, integers or floats; a missing one is an error that names its row."""
    array = label_cells(labels, where=where)
    if len(array) == 0:
        raise no_labels(where)
    if array.null_count:
        raise missing_label(first_true(pc.is_null(array)), array.null_count, where)
    return array


def no_labels(where: str) -> UserError:
    """Return the error for labels that are none."""
    return UserError(f"{where} holds no labels.")


def missing_label(row: int, missing: int, where: str) -> RowError:
    """Return the error for the first of some labels that are missing."""
    return RowError(
        f"{where}: the label of data row ",
        row,
        f" is missing ({missing} missing in all): fill in or remove these rows, or learn without labels.",
    )


def label_cells(labels: object, *, where: str) -> Any:
    """Return labels as an Arrow array of text, integers or floats, null where they are missing."""
    if isinstance(labels, np.ndarray):
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise UserError(f"{where} has shape {labels.shape}: labels are one value for each row.")
        if labels.dtype.kind == "S":
            labels = _decoded(labels, where)
    try:
        array = labels if isinstance(labels, pa.ChunkedArray) else pa.array(labels, from_pandas=True)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise UserError(f"{where} mixes labels of different types: make them all text or all numbers.") from error
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        array = array.cast(pa.float64(), safe=False)
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)
    elif is_text(array.type):
        array = text_of(array)
    elif not (pa.types.is_integer(array.type) or pa.types.is_boolean(array.type) or pa.types.is_null(array.type)):
        raise UserError(f"{where} holds labels of type {array.type}: they must be text, numbers or true / false.")
    return array
