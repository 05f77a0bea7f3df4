"""A column of free text: TF-IDF of its most frequent words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from pinoise.data.encoding.cells import Encoded, missing_cell
from pinoise.data.formats.arrow import first_true, text_of

MOST_WORDS = 300
"""The most words of a text column that become features: those in most rows."""

LEAST_ROWS = 2  # that a word must be in
_WORDS_OF_TEXT = 3.0  # cells of this many words on average, nearly all different, are sentences


@dataclass(frozen=True)
class TextColumn:
    """A column of sentences: for each known word the feature ``column~word``, its TF-IDF in a row of length 1."""

    name: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: all words of the text."""
        return (len(self.words),)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        return tuple(f"{self.name}~{word}" for word in self.words)

    def encode(self, column: Any, out: npt.NDArray[np.float64], *, refuse_missing: bool, where: str) -> Encoded:
        """Write the column's features into ``out`` of shape (rows, words); a missing text has no word."""
        text = text_of(column)
        if text.null_count and refuse_missing:
            raise missing_cell(self.name, first_true(pc.is_null(text)), where)
        vectorizer = _vectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = np.array(self.idf)
        out[...] = vectorizer.transform(_cells(text)).toarray()
        return Encoded(missing=0)


def learn_text(column: Any, name: str) -> TextColumn | None:
    """Return the words of a text column with their inverse document frequency; None where none is in two rows.

    >>> import pyarrow as pa
    >>> learned = learn_text(pa.array(["good wine", "bad wine", "good bread"]), "note")
    >>> learned.features, [round(weight, 2) for weight in learned.idf]
    (('note~good', 'note~wine'), [1.29, 1.29])
    """
    cells = _cells(text_of(column))
    counter = _vectorizer(min_df=min(LEAST_ROWS, len(cells)), max_features=MOST_WORDS)
    try:
        counter.fit(cells)
    except ValueError:  # there is no such word
        return None
    return TextColumn(name, tuple(counter.get_feature_names_out().tolist()), tuple(counter.idf_.tolist()))


def is_prose(column: Any) -> bool:
    """Whether cells are sentences rather than names.

    >>> import pyarrow as pa
    >>> is_prose(pa.array(["came too late again", "all fine, thank you"])), is_prose(pa.array(["A-1", "A-2"]))
    (True, False)
    """
    text = text_of(column).drop_null()
    spaces = pc.mean(pc.count_substring_regex(text, r"\s+")).as_py() or 0.0
    return bool(spaces + 1 >= _WORDS_OF_TEXT)


def _cells(text: Any) -> Sequence[str]:
    cells: list[str] = pc.fill_null(text, "").to_pylist()
    return cells


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(dtype=np.float64, **options)
