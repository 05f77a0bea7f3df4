"""Reuters-21578, from the original SGML files, as the set of 46 topics."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import members, open_inner
from pinoise.data.messages import damage_named
from pinoise.data.splitting import stratified_rows
from pinoise.errors import UserError

_INNER = "reuters21578.tar.gz"
_LIMIT = 256 << 20  # the archive unpacks to 28 MB


@dataclass(frozen=True)
class Story:
    """A document: its topics in the order of the file, and its title and body."""

    topics: tuple[str, ...]
    text: str


def read_reuters21578(entry: Entry, paths: Sequence[Path]) -> Dataset:
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
    number = {topic: index for index, topic in enumerate(names)}
    y = np.array([number[story.topics[0]] for story in stories], dtype=np.int64)
    train, test = stratified_rows(y)
    tfidf = TfidfVectorizer(max_features=entry.shape[0], stop_words="english", dtype=np.float32)
    x_train = tfidf.fit_transform([stories[row].text for row in train])
    x_test = tfidf.transform([stories[row].text for row in test])
    return Dataset(
        entry.name,
        train=Part(sp.csr_array(x_train), y[train]),
        test=Part(sp.csr_array(x_test), y[test]),
        feature_names=tuple(str(word) for word in tfidf.get_feature_names_out()),
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
    source, label = open_inner(path, _INNER, limit=_LIMIT)
    texts = {
        Path(name).name: stream.read().decode("latin-1")
        for name, stream in members(source, "reut2-*.sgm", label=label, limit=_LIMIT)
    }
    if not texts:
        raise UserError(f"{label} holds none of the files reut2-000.sgm to reut2-021.sgm.")
    with damage_named(label, ValueError):  # a character by a number of thousands of digits
        return [story for name in sorted(texts) for story in parse_stories(texts[name])]
