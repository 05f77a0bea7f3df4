"""The two Reuters sets: Reuters-10k from the vectors of RCV1-v2, and Reuters-21578 from its SGML files."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import RawArrays, RawPart
from pinoise.data.formats.archives import GIB, members, open_compressed, open_inner
from pinoise.data.formats.svmlight import parse_svmlight
from pinoise.data.messages import damage_named
from pinoise.data.splitting import stratified_rows
from pinoise.errors import UserError

ROOTS = ("CCAT", "ECAT", "GCAT", "MCAT")
_TERMS = 47_236  # numbered from 1


def read_reuters10k(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read the topics and the five vector files that LYRL2004 published, and draw the sample.

    The rule: of the documents in exactly one of the four root categories, 10,000 are drawn with a fixed seed and
    kept in the order of their numbers; the split is stratified, 80/20, with a fixed seed; the features are the
    2,000 terms that occur in most training documents (ties go to the lower number), with the published weights.
    The sample that the literature calls Reuters-10k was never published, so this one is not the same documents.
    """
    topics, *vectors = paths
    documents = sum(entry.rows)
    roots = single_roots(topics)
    if len(roots) < documents:
        raise UserError(
            f"{topics} has {len(roots)} documents of one root category: {documents} are needed; is it complete?"
        )
    candidates = np.array(sorted(roots), dtype=np.int64)
    chosen = np.sort(np.random.default_rng(0).choice(candidates, size=documents, replace=False))
    x = _vectors(vectors, chosen)
    y = np.array([roots[document] for document in chosen.tolist()], dtype=np.int64)
    train, test = stratified_rows(y)
    kept = frequent_terms(x[train], entry.shape[0])
    return RawArrays(
        RawPart(sp.csr_array(x[train][:, kept]), y[train]),
        RawPart(sp.csr_array(x[test][:, kept]), y[test]),
        feature_names=tuple(str(term + 1) for term in kept),
        class_names=ROOTS,
        notes=(
            f"{documents} of {len(roots)} documents of one root category, drawn with a fixed seed",
            "split: stratified 80/20 with a fixed seed",
            f"features: the {len(kept)} terms of highest document frequency in the training part, "
            "named by their number in the publisher's list",
        ),
    )


def single_roots(path: Path) -> dict[int, int]:
    """Return the class of every document that is in exactly one of the root categories.

    The file has lines such as ``CCAT 2286 1``: category, document, 1.
    """
    bits = {root.encode(): 1 << index for index, root in enumerate(ROOTS)}
    masks: Counter[int] = Counter()
    with open_compressed(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                category, document, _ = line.split()
                masks[int(document)] |= bits.get(category, 0)
            except ValueError as error:
                raise UserError(
                    f"{path}, line {number}: {line[:60]!r} was found instead of category, document and 1."
                ) from error
    return {document: mask.bit_length() - 1 for document, mask in masks.items() if mask.bit_count() == 1}


def frequent_terms(x: sp.csr_array, terms: int) -> npt.NDArray[np.int64]:
    """Return, in order, the columns that are non-zero in most rows; ties go to the lower column.

    >>> frequent_terms(sp.csr_array(np.array([[0, 2, 1, 3], [0, 1, 0, 1], [0, 0, 0, 2]])), 2).tolist()
    [1, 3]
    """
    frequency = np.bincount(x.indices[x.data != 0], minlength=x.shape[1])
    return np.sort(np.argsort(-frequency, kind="stable")[:terms]).astype(np.int64)


def _vectors(paths: Sequence[Path], documents: npt.NDArray[np.int64]) -> sp.csr_array:
    """Return documents in the order of their numbers, which stand in the place of labels in svmlight's format."""
    found: list[Any] = []
    numbers: list[Any] = []
    for path in paths:
        with open_compressed(path, limit=8 * GIB) as stream:
            part: Any = parse_svmlight(stream, where=str(path), n_features=_TERMS, first_index=1).train
        here = np.isin(part.y, documents)
        found.append(part.x[here])
        numbers.append(part.y[here])
    order = np.argsort(np.concatenate(numbers))
    if len(order) < len(documents):
        raise UserError(
            f"{len(documents) - len(order)} of {len(documents)} documents have no vector in "
            f"{', '.join(map(str, paths))}: are the files complete?"
        )
    return sp.csr_array(sp.vstack(found, format="csr")[order])


class Story(NamedTuple):
    """A document of Reuters-21578: its topics in the order of the file, and its title and body."""

    topics: tuple[str, ...]
    text: str


def read_reuters21578(entry: Entry, paths: Sequence[Path]) -> RawArrays:
    """Read the stories of ``reuters21578.tar.gz``, or of the UCI repository's zip around it.

    The rule: a story's class is the topic listed first in it; stories without a topic are left out; of the topics,
    the 46 that come first most often are kept (ties go to the one that occurs earlier); classes are numbered in
    the order in which they occur in reut2-000.sgm to reut2-021.sgm. The split is stratified, 80/20, with a fixed
    seed. Features are scikit-learn's tf-idf of title and body, for the 2,000 most frequent words of the training
    part that are not English stop words.

    The well-known set of 46 topics and 11,228 documents that Keras distributes was made by a rule that was never
    published. What can be seen of it agrees with the rule above: its topics are numbered by first appearance, and
    ``wheat``, mostly listed after ``grain``, is rare in it. Its split and its words are its own, so figures on the
    two are not comparable digit for digit.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    (path,) = paths
    stories = [story for story in _stories(path) if story.topics]
    counts = Counter(story.topics[0] for story in stories)
    kept = {topic for topic, _ in counts.most_common(entry.classes)}
    stories = [story for story in stories if story.topics[0] in kept]
    names = tuple(dict.fromkeys(story.topics[0] for story in stories))
    if len(names) < 2 or min(counts[topic] for topic in names) < 5:
        raise UserError(
            f"{path} holds {len(stories)} stories of {len(names)} topics, too few of each to be split: "
            "is the archive complete?"
        )
    y = np.array([names.index(story.topics[0]) for story in stories], dtype=np.int64)
    train, test = stratified_rows(y)
    tfidf = TfidfVectorizer(max_features=entry.shape[0], stop_words="english", dtype=np.float32)
    x_train = tfidf.fit_transform([stories[row].text for row in train])
    x_test = tfidf.transform([stories[row].text for row in test])
    return RawArrays(
        RawPart(sp.csr_array(x_train), y[train]),
        RawPart(sp.csr_array(x_test), y[test]),
        feature_names=tuple(map(str, tfidf.get_feature_names_out())),
        class_names=names,
        notes=(
            f"class: the first topic of a story, of the {len(names)} most frequent",
            "split: stratified 80/20 with a fixed seed",
            "features: tf-idf fitted on the training part",
        ),
    )


def parse_stories(text: str) -> Iterator[Story]:
    """Yield the stories of one SGML file.

    >>> text = "<REUTERS><TOPICS><D>grain</D><D>corn</D></TOPICS><TEXT><TITLE>A &lt;B></TITLE></TEXT></REUTERS>"
    >>> next(parse_stories(text))
    Story(topics=('grain', 'corn'), text='A <B>')
    """
    for document in elements(text, "REUTERS"):
        topics = next(elements(document, "TOPICS"), "")
        content = next(elements(document, "TEXT"), "")
        # Stories that were never marked up have neither title nor body, only text.
        pieces = [*elements(content, "TITLE"), *elements(content, "BODY")] or [content]
        yield Story(topics=tuple(elements(topics, "D")), text=html.unescape("\n".join(pieces)))


def elements(text: str, name: str) -> Iterator[str]:
    """Yield the content of all elements of this name, up to the first that is not closed, in one pass over the text.

    >>> list(elements('<D>grain</D> <DATE>1987</DATE> <D kind="x">corn</D> <D>open', "D"))
    ['grain', 'corn']
    """
    place = 0
    while (start := text.find(f"<{name}", place)) >= 0:
        place = start + len(name) + 1
        if text[place : place + 1].isalnum():  # another name, which begins like this one
            continue
        inside = text.find(">", place) + 1
        end = text.find(f"</{name}>", inside)
        if inside == 0 or end < 0:
            return
        yield text[inside:end]
        place = end + len(name) + 3


def _stories(path: Path) -> list[Story]:
    source, label = open_inner(path, "reuters21578.tar.gz")
    found = members(source, "reut2-*.sgm", label=label)
    texts = {Path(name).name: stream.read().decode("latin-1") for name, stream in found}
    if not texts:
        raise UserError(f"{label} holds none of the files reut2-000.sgm to reut2-021.sgm.")
    with damage_named(label, ValueError):  # a character by a number of thousands of digits
        return [story for name in sorted(texts) for story in parse_stories(texts[name])]
