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

MOST_COUNTED = 1 << 20
"""Different words of a text column above which those that have been in one row alone so far are forgotten."""

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


class Words:
    """The words of a text column that comes in pieces: in how many rows each is, and how often.

    >>> import pyarrow as pa
    >>> words = Words()
    >>> words.add(pa.array(["good wine", "bad wine"]))
    >>> words.add(pa.array(["good bread"]))
    >>> learned = words.learned("note")
    >>> learned.features, [round(weight, 2) for weight in learned.idf]
    (('note~good', 'note~wine'), [1.29, 1.29])
    """

    def __init__(self) -> None:
        self._rows = 0
        self._found: dict[str, tuple[int, int]] = {}  # rows that have the word, and how often it comes

    def add(self, column: Any) -> None:
        """Take the next rows."""
        cells = _cells(text_of(column))
        self._rows += len(cells)
        counter = _counter()
        try:
            counts = counter.fit_transform(cells)
        except ValueError:  # there is no word
            return
        rows, times = np.bincount(counts.indices, minlength=counts.shape[1]), np.asarray(counts.sum(axis=0)).ravel()
        for word, *found in zip(counter.get_feature_names_out().tolist(), rows.tolist(), times.tolist(), strict=True):
            known = self._found.get(word, (0, 0))
            self._found[word] = known[0] + found[0], known[1] + found[1]
        if len(self._found) > MOST_COUNTED:
            self._found = {word: found for word, found in self._found.items() if found[0] > 1}

    def learned(self, name: str) -> TextColumn | None:
        """Return the words of the column with their inverse document frequency; None where none is in two rows."""
        least = min(LEAST_ROWS, self._rows)
        common = [(word, *found) for word, found in self._found.items() if found[0] >= least]
        chosen = sorted(sorted(common, key=lambda found: (-found[2], found[0]))[:MOST_WORDS])
        if not chosen:
            return None
        idf = np.log((1 + self._rows) / (1 + np.array([rows for _, rows, _ in chosen], np.float64))) + 1
        return TextColumn(name, tuple(word for word, _, _ in chosen), tuple(idf.tolist()))


def is_prose(spaces: int, cells: int) -> bool:
    """Whether cells with so many gaps between words are sentences rather than names.

    >>> is_prose(7, 2), is_prose(0, 2)
    (True, False)
    """
    return (spaces / cells if cells else 0.0) + 1 >= _WORDS_OF_TEXT


def _cells(text: Any) -> Sequence[str]:
    cells: list[str] = pc.fill_null(text, "").to_pylist()
    return cells


def _counter() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer()


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(dtype=np.float64, **options)
