"""Labels of any type, and the class numbers from 0 that stand for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.dataset import Labels
from pinoise.data.formats.arrow import first_true, is_text, label_array, text_of
from pinoise.data.messages import listed
from pinoise.errors import UserError

MANY_CLASSES = 64  # above it, labels that hardly ever repeat are a measurement or an identifier


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

    def covers(self, labels: object, *, where: str) -> bool:
        """Whether all labels are known.

        >>> LabelEncoding(("cat", "dog"), ("cat", "dog"), text=True).covers(["dog", "cow"], where="y")
        False
        """
        known = pa.array(self.values, pa.large_string())
        return bool(pc.all(pc.is_in(text_of(label_array(labels, where=where)), value_set=known)).as_py())

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


def learn_labels(labels: object, *, where: str, names: Sequence[str] | None = None) -> LabelEncoding:
    """Return the encoding of the labels found, sorted; with ``names``, labels are indices into them or the names."""
    array = label_array(labels, where=where)
    distinct = pc.unique(array)
    if len(distinct) < 2:
        raise UserError(f"{where}: every label is {text_of(distinct)[0].as_py()!r}, but classes need two or more.")
    if len(distinct) > MANY_CLASSES and len(distinct) > len(array) / 2:
        raise UserError(
            f"{where} has {len(distinct)} different labels in {len(array)} rows: that is a measurement or an "
            "identifier, not a class; choose another label column or none."
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
