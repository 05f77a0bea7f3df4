"""A column of free text: TF-IDF of its most frequent words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc

from pinoise.data.table.cells import CellCounts, Floats, text_of

MOST_WORDS = 300
"""The most words of a text column that become features: the most frequent ones."""

LEAST_ROWS = 2  # that a word must be in


@dataclass(frozen=True)
class TextColumn:
    """A column of sentences: for each known word the feature ``column~word``, its TF-IDF in a row of length 1."""

    name: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    precise: ClassVar[bool] = False  # single precision loses nothing that matters

    @property
    def sizes(self) -> tuple[int, ...]:
        """The features that belong together: all words of the text."""
        return (len(self.words),)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the column's features."""
        return tuple(f"{self.name}~{word}" for word in self.words)

    def encode(self, column: Any, out: Floats, *, where: str) -> CellCounts:
        """Write the column's features into ``out`` of shape (rows, words); a missing text has no word."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(dtype=np.float64, vocabulary=list(self.words))
        vectorizer.idf_ = np.array(self.idf)
        out[...] = vectorizer.transform(pc.fill_null(text_of(column), "").to_pylist()).toarray()
        return CellCounts()

    def decode(self, features: Floats, column: Any) -> Any:
        """Return the cells as they are: words alone make no sentence."""
        return column


def learn_words(name: str, column: Any) -> TextColumn | None:
    """Return the words of a column with their inverse document frequency; None where none is in two rows.

    >>> import pyarrow as pa
    >>> learned = learn_words("note", pa.array(["good wine", "bad wine", "good bread"]))
    >>> learned.features, [round(weight, 2) for weight in learned.idf]
    (('note~good', 'note~wine'), [1.29, 1.29])
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    cells = pc.fill_null(text_of(column), "").to_pylist()
    vectorizer = TfidfVectorizer(min_df=min(LEAST_ROWS, len(cells)), max_features=MOST_WORDS)
    try:
        vectorizer.fit(cells)
    except ValueError:  # there is no such word
        return None
    return TextColumn(name, tuple(map(str, vectorizer.get_feature_names_out())), tuple(vectorizer.idf_.tolist()))
