"""What a run stores about its data so that a new file is read exactly as the training one was."""

from __future__ import annotations

from typing import Any

from pinoise.data.array_preparation import ArrayPreparation
from pinoise.data.table_preparation import TablePreparation
from pinoise.errors import UserError

Preparation = TablePreparation | ArrayPreparation
"""How a source becomes a data set; tables also have categories and fill values."""


def preparation_from_json(stored: dict[str, Any]) -> Preparation:
    """Return the preparation whose ``to_json`` is given.

    >>> preparation_from_json({"kind": "picture"})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: the stored preparation is of kind 'picture': it must be 'table' or 'array'.
    """
    kind = stored.get("kind")
    if kind == "table":
        return TablePreparation.from_json(stored)
    if kind == "array":
        return ArrayPreparation.from_json(stored)
    raise UserError(f"the stored preparation is of kind {kind!r}: it must be 'table' or 'array'.")
