"""What a run stores about its data so that a new file is read exactly as the training one was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pinoise.data.preparation.arrays import ArrayPreparation
from pinoise.data.preparation.images import ImagePreparation
from pinoise.data.preparation.tables import TablePreparation
from pinoise.errors import UserError

Preparation = TablePreparation | ArrayPreparation | ImagePreparation
"""How a source becomes a data set; tables also have categories and fill values, folders of images a size."""


def preparation_from_json(stored: dict[str, Any]) -> Preparation:
    """Return the preparation whose ``to_json`` is given.

    >>> preparation_from_json({"kind": "picture"})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: the stored preparation is of kind 'picture': it must be 'table', 'array' or 'images'.
    """
    kind = stored.get("kind")
    if kind == "table":
        return TablePreparation.from_json(stored)
    if kind == "array":
        return ArrayPreparation.from_json(stored)
    if kind == "images":
        return ImagePreparation.from_json(stored)
    raise UserError(f"the stored preparation is of kind {kind!r}: it must be 'table', 'array' or 'images'.")


def refuse_table_options(categorical: Sequence[str], drop: Sequence[str], *, where: str) -> None:
    """Raise an error for options that only a table with named columns can follow."""
    for option, columns in (("categorical", categorical), ("drop", drop)):
        if columns:
            raise UserError(f"{where} has no named columns, so {option}={list(columns)} cannot apply: leave it out.")


def image_preparation(preparation: Preparation, where: str) -> ImagePreparation:
    """Return the preparation of a folder of images where training had such a folder, or arrays of images."""
    if isinstance(preparation, ImagePreparation):
        return preparation
    if isinstance(preparation, TablePreparation):
        raise UserError(f"{where} is a folder of images, but training had a table.")
    shape = preparation.shape
    if len(shape) < 2 or shape[2:] not in ((), (3,)):
        raise UserError(f"{where} is a folder of images, but training had an array of samples of shape {shape}.")
    return ImagePreparation(preparation, corrupt="refuse")


def wrong_kind(preparation: Preparation, where: str) -> UserError:
    """Return the error for a table where training had arrays or images, or the reverse."""
    if isinstance(preparation, TablePreparation):
        wanted = f"a table with the columns {', '.join(c.name for c in preparation.columns[:8])}"
        return UserError(f"{where} is an array, but training had {wanted}: give such a table.")
    kind = "images" if isinstance(preparation, ImagePreparation) else "an array of samples"
    return UserError(f"{where} is a table, but training had {kind} of shape {preparation.shape}.")
