"""Encodings as JSON holds them, read back with every field checked: a file may come from anyone."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pinoise.data.encoding.arrays import ArrayEncoding
from pinoise.data.encoding.columns import MISSING, OTHER, CategoricalColumn, Column
from pinoise.data.encoding.labels import LabelEncoding
from pinoise.data.encoding.tables import TableEncoding
from pinoise.data.encoding.texts import TextColumn
from pinoise.errors import UserError

E = TypeVar("E", TableEncoding, ArrayEncoding)


def restored(kind: type[E], stored: dict[str, Any]) -> E:
    """Return the encoding of which ``dataclasses.asdict`` is stored. Refuse any other value.

    >>> restored(ArrayEncoding, {"shape": [3], "sparse": "no"})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: the stored preparation is damaged: it has no sound entry 'sparse'.
    """
    try:
        encoding = TypeAdapter(kind).validate_json(json.dumps(stored), strict=True)
    except ValidationError as error:
        entry = next((str(part) for part in error.errors()[0]["loc"] if isinstance(part, str)), "")
        raise _damaged(entry) from None
    fault = _table_fault(encoding) if isinstance(encoding, TableEncoding) else _array_fault(encoding)
    if fault is None and not _are_labels(encoding.labels):
        fault = "labels"
    if fault is not None:
        raise _damaged(fault)
    return encoding


def _table_fault(encoding: TableEncoding) -> str | None:
    names = [column.name for column in encoding.columns]
    sound = bool(names) and _differ(names) and encoding.label not in names and all(map(_is_column, encoding.columns))
    return None if sound else "columns"


def _is_column(column: Column) -> bool:
    if isinstance(column, TextColumn):
        return (
            0 < len(column.words) == len(column.idf) and _differ(column.words) and all(map(math.isfinite, column.idf))
        )
    if not isinstance(column, CategoricalColumn):
        return math.isfinite(column.fill) and bool(column.features)
    used = [extra for extra, wanted in ((MISSING, column.missing), (OTHER, column.other)) if wanted]
    return _differ(column.categories) and set(used) <= set(column.categories)


def _array_fault(encoding: ArrayEncoding) -> str | None:
    shape, names = encoding.shape, encoding.feature_names
    if not shape or min(shape) < 1:
        return "shape"
    if names is not None and (len(names),) != shape:
        return "feature_names"
    if encoding.label is not None and (len(shape) > 1 or not 0 <= encoding.label <= shape[0]):
        return "label"
    return None if encoding.first_index in (None, 0, 1) else "first_index"


def _are_labels(labels: LabelEncoding | None) -> bool:
    if labels is not None and labels.measured:
        return not labels.values and not labels.names and not labels.text
    return labels is None or (len(labels.values) == len(labels.names) > 0 and _differ(labels.values))


def _differ(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _damaged(entry: str) -> UserError:
    return UserError(f"the stored preparation is damaged: it has no sound entry {entry!r}.")
