"""A column of names: text, truth values, or what the user calls categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinoise.data.table.cells import CellCounts, Floats, are_all, is_number, is_text, other_kind, text_of

MISSING, OTHER = "missing", "other"


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of text or truth values: one feature ``column=value`` for each category, 1 where it holds."""

    name: str
    categories: tuple[str, ...]
    kind: Literal["text", "boolean"]
    missing: bool  # a missing cell is the category "missing"; otherwise it has none
    other: bool  # a value without a category is the category "other"; otherwise it has none

    def __post_init__(self) -> None:
        used = [extra for extra, wanted in ((MISSING, self.missing), (OTHER, self.other)) if wanted]
        if len(set(self.categories)) < len(self.categories) or not set(used) <= set(self.categories):
            raise ValueError("the categories are no set")

    precise: ClassVar[bool] = False  # single precision loses nothing that matters

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: all values of the category."""
        return (len(self.categories),)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, column: Any, out: Floats, *, where: str) -> CellCounts:
        """Write the column's features into ``out`` of shape (rows, categories)."""
        text = self._text(column, where)
        codes, empty, strange = self._codes(text)
        if self.other:
            strange[:] = False
        out[...] = codes[:, None] == np.arange(len(self.categories))
        strange |= empty & (not self.missing)
        examples = pc.unique(pc.fill_null(text, MISSING).filter(pa.array(strange))).to_pylist()
        return CellCounts(int(empty.sum()) * self.missing, int(strange.sum()), tuple(examples))

    def decode(self, features: Floats, column: Any) -> Any:
        """Return features as cells of the type that ``column`` has: categories that exist; gaps stay gaps.

        A cell without a category of its own stays as it is where no category has more than half of it.
        """
        text = self._text(column, "")
        codes, empty, _ = self._codes(text)
        extras = [self.categories.index(name) for name, used in ((MISSING, self.missing), (OTHER, self.other)) if used]
        found, known = features.argmax(axis=1), features.copy()
        faint, same = features.max(axis=1, initial=0) < 0.5, codes == found
        stays = empty | ((codes < 0) & faint) | (np.isin(codes, extras) & same)
        known[:, extras] = -np.inf  # "missing" and "other" are no values: such a cell takes its next best category
        names = pa.array(self.categories, pa.large_string()).take(pa.array(known.argmax(axis=1)))
        cells = pc.if_else(pa.array(stays), text, names)
        return cells.cast(column.type) if not pa.types.is_dictionary(column.type) else cells.dictionary_encode()

    def _codes(self, text: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return the category of every cell, -1 without one, which cells are empty, and which have an unknown value."""
        found = pc.index_in(text, value_set=pa.array(self.categories, pa.large_string()))
        codes = pc.fill_null(found, -1).to_numpy().astype(np.int64)
        empty = np.asarray(pc.is_null(text).to_numpy(zero_copy_only=False), dtype=bool)
        strange = (codes < 0) & ~empty
        if self.missing:
            codes[empty] = self.categories.index(MISSING)
        if self.other:
            codes[strange] = self.categories.index(OTHER)
        return codes, empty, strange

    def _text(self, column: Any, where: str) -> Any:
        kind = column.type
        if pa.types.is_null(kind):
            return column.cast(pa.large_string())
        text = is_text(kind) or pa.types.is_dictionary(kind)
        if self.kind == "boolean" and (pa.types.is_boolean(kind) or (text and are_truths(text_of(column)))):
            return pc.utf8_lower(text_of(column))
        if self.kind == "boolean" or not (text or is_number(kind) or pa.types.is_boolean(kind)):
            raise other_kind("true / false" if self.kind == "boolean" else "text", kind, where)
        return text_of(column)


def are_truths(text: Any) -> bool:
    """Whether all cells of text are true or false, in any case.

    >>> are_truths(pa.array(["True", "FALSE", None])), are_truths(pa.array(["yes"]))
    (True, False)
    """
    known = pc.match_substring_regex(text, "(?i)^(true|false)$")
    return text.null_count == len(text) or are_all(known)


def most_frequent(text: Any, most: int) -> list[str]:
    """Return the most frequent values of text, of equally frequent ones those that sort first; sorted.

    >>> most_frequent(pa.array(["b", "a", "c", "b", None]), 2)
    ['a', 'b']
    """
    counts = pc.value_counts(text.drop_null())
    table = pa.table({"value": counts.field(0), "count": counts.field(1)})
    first = pc.select_k_unstable(table, min(most, len(table)), [("count", "descending"), ("value", "ascending")])
    return sorted(table.column("value").take(first).to_pylist())
