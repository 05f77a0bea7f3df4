"""Sets that are published as text: UCI HAR's tables, both Reuters, and Epsilon and MSLR-WEB30K in svmlight's format.

A file whose checksum the catalogue knows was verified, so what is in it is not checked again.
"""

from __future__ import annotations

import html
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.dataset import Part, RawArrays, stratified_rows
from pinoise.data.formats.opened import GIB, open_compressed
from pinoise.data.formats.svmlight import numbered, parse_rows, read_svmlight
from pinoise.errors import UserError, damage_named
from pinoise.paper.archives import members, open_member
from pinoise.paper.catalogue.facts import Entry

_BLOCK = 64 << 20  # bytes of text parsed at a time

ROOTS = ("CCAT", "ECAT", "GCAT", "MCAT")


def read_har(path: Path) -> RawArrays:
    """Read UCI HAR's 561 features from the repository's zip, or from the zip of the same data within it."""
    found: dict[str, Any] = {}
    for member, stream in members(path, "*.txt", inner="UCI HAR Dataset.zip"):
        name = Path(member).stem
        if name in ("features", "activity_labels"):
            found[name] = tuple(np.loadtxt(stream, dtype=str, usecols=1).tolist())
        elif name in ("X_train", "X_test"):
            found[name] = np.loadtxt(stream, dtype=np.float32)
        elif name in ("y_train", "y_test", "subject_train", "subject_test"):
            found[name] = np.loadtxt(stream, dtype=np.int64)
    train, test = (Part(found[f"X_{on}"], found[f"y_{on}"] - 1, found[f"subject_{on}"]) for on in ("train", "test"))
    return RawArrays(train, test, found["features"], found["activity_labels"])


def read_svmlight_files(entry: Entry, *paths: Path) -> RawArrays:
    """Read a training and a test file in svmlight's format, plain or compressed by gzip or bzip2, as dense rows."""
    train, test = (_dense(entry, open_compressed(path, limit=32 * GIB), str(path)) for path in paths)
    return RawArrays(train, test)


def read_mslr(entry: Entry, path: Path) -> RawArrays:
    """Read the first fold from the publisher's zip: web pages judged for queries. Its validation part is left out."""
    train, test = (
        _dense(entry, open_member(path, name, limit=16 * GIB), f"{path}: {name}")
        for name in ("Fold1/train.txt", "Fold1/test.txt")
    )
    return RawArrays(train, test, notes=("Fold1/vali.txt of the publisher is left out",))


def _dense(entry: Entry, opened: AbstractContextManager[BinaryIO], where: str) -> Part:
    """Return rows whose features count from 1; each block is dense before the next one is read."""
    blocks = []
    with opened as stream:
        while lines := stream.readlines(_BLOCK):
            x, y, queries = parse_rows(io.BytesIO(b"".join(lines)), where=where)
            blocks.append((numbered(x, 1, entry.shape[0], where=where).toarray(), y, queries))
    if not blocks:
        raise UserError(f"{where} holds no rows.")
    samples, labels, groups = zip(*blocks, strict=True)
    return Part(np.concatenate(samples), np.concatenate(labels), None if groups[0] is None else np.concatenate(groups))


def read_reuters10k(entry: Entry, topics: Path, *vectors: Path) -> RawArrays:
    """Read the topics and the five vector files that LYRL2004 published, and draw the sample.

    The rule: of the documents in exactly one of the four root categories, 10,000 are drawn with a fixed seed and
    kept in the order of their numbers; the split is stratified, 80/20, with a fixed seed; the features are the
    2,000 terms that occur in most training documents (ties go to the lower number), with the published weights.
    The sample that the literature calls Reuters-10k was never published, so this one is not the same documents.
    """
    roots = single_roots(topics)
    chosen = np.sort(np.random.default_rng(0).choice(sorted(roots), size=sum(entry.rows), replace=False))
    x = _vectors(vectors, chosen)
    y = np.array([roots[document] for document in chosen.tolist()])
    train, test = stratified_rows(y)
    kept = frequent_terms(x[train], entry.shape[0])
    return RawArrays(
        Part(x[train][:, kept], y[train]),
        Part(x[test][:, kept], y[test]),
        feature_names=tuple(str(term + 1) for term in kept),
        class_names=ROOTS,
        notes=(f"{len(y)} of {len(roots)} documents of one root category, drawn with a fixed seed",),
    )


def single_roots(path: Path) -> dict[int, int]:
    """Return the class of every document that is in exactly one of the root categories.

    The file has lines such as ``CCAT 2286 1``: category, document, 1.
    """
    bits = {root.encode(): 1 << index for index, root in enumerate(ROOTS)}
    masks: Counter[int] = Counter()
    with open_compressed(path) as stream:
        for line in stream:
            category, document, _ = line.split()
            masks[int(document)] |= bits.get(category, 0)
    return {document: mask.bit_length() - 1 for document, mask in masks.items() if mask.bit_count() == 1}


def frequent_terms(x: sp.csr_array, terms: int) -> npt.NDArray[np.int64]:
    """Return, in order, the columns that are non-zero in most rows; ties go to the lower column.

    >>> frequent_terms(sp.csr_array(np.array([[0, 2, 1, 3], [0, 1, 0, 1], [0, 0, 0, 2]])), 2).tolist()
    [1, 3]
    """
    frequency = np.bincount(x.indices[x.data != 0], minlength=x.shape[1])
    return np.sort(np.argsort(-frequency, kind="stable")[:terms]).astype(np.int64)


def _vectors(paths: Sequence[Path], documents: npt.NDArray[np.int64]) -> Any:
    """Return documents in the order of their numbers, which stand in the place of labels in svmlight's format."""
    found: list[Any] = []
    numbers: list[Any] = []
    for path in paths:
        part: Any = read_svmlight(path, n_features=47_236, first_index=1).train
        here = np.isin(part.y, documents)
        found.append(part.x[here])
        numbers.append(part.y[here])
    return sp.vstack(found, format="csr")[np.argsort(np.concatenate(numbers))]


def read_reuters21578(entry: Entry, path: Path) -> RawArrays:
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

    stories = _stories(path)
    kept = dict(Counter(topic for topic, _ in stories).most_common(entry.classes))
    stories = [(topic, text) for topic, text in stories if topic in kept]
    names = list(dict.fromkeys(topic for topic, _ in stories))
    y = np.array([names.index(topic) for topic, _ in stories])
    with damage_named(path, ValueError):  # too few stories to be split
        train, test = stratified_rows(y)
    tfidf = TfidfVectorizer(max_features=entry.shape[0], stop_words="english", dtype=np.float32)
    x_train = tfidf.fit_transform([stories[row][1] for row in train])
    x_test = tfidf.transform([stories[row][1] for row in test])
    return RawArrays(
        Part(sp.csr_array(x_train), y[train]),
        Part(sp.csr_array(x_test), y[test]),
        feature_names=tuple(map(str, tfidf.get_feature_names_out())),
        class_names=tuple(names),
        notes=(f"class: the first topic of a story, of the {len(names)} most frequent",),
    )


def _stories(path: Path) -> list[tuple[str, str]]:
    found = members(path, "reut2-*.sgm", inner="reuters21578.tar.gz")
    texts = {Path(name).name: stream.read().decode("latin-1") for name, stream in found}
    if not texts:
        raise UserError(f"{path} holds none of the files reut2-000.sgm to reut2-021.sgm.")
    with damage_named(path, ValueError):  # a character by a number of thousands of digits
        return [story for name in sorted(texts) for story in parse_stories(texts[name])]


def parse_stories(text: str) -> Iterator[tuple[str, str]]:
    """Yield the first topic, and title and body, of the stories of one SGML file that have a topic.

    >>> text = "<REUTERS><TOPICS><D>grain</D><D>corn</D></TOPICS><TEXT><TITLE>A &lt;B></TITLE></TEXT></REUTERS>"
    >>> next(parse_stories(text))
    ('grain', 'A <B>')
    """
    for document in elements(text, "REUTERS"):
        topics = next(elements(document, "TOPICS"), "")
        content = next(elements(document, "TEXT"), "")
        # Stories that were never marked up have neither title nor body, only text.
        pieces = [*elements(content, "TITLE"), *elements(content, "BODY")] or [content]
        for topic in [*elements(topics, "D")][:1]:
            yield topic, html.unescape("\n".join(pieces))


def elements(text: str, name: str) -> Iterator[str]:
    """Yield the content of all elements of this name, in one pass over the text.

    >>> list(elements('<D>grain</D> <DATE>1987</DATE> <D kind="x">corn</D> <D>open', "D"))
    ['grain', 'corn']
    """
    for piece in text.split(f"</{name}>")[:-1]:
        _, start, rest = piece.rpartition(f"<{name}")
        if start:
            yield rest.partition(">")[2]
