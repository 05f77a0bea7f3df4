from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.errors import UserError
from pinoise.paper.catalogue import Entry, entry
from pinoise.paper.catalogue.loading import read_set
from pinoise.paper.catalogue.texts import ROOTS, frequent_terms, single_roots

NAMES = ("lyrl2004_vectors_train.dat.gz", *(f"lyrl2004_vectors_test_pt{part}.dat.gz" for part in range(4)))


def sample(documents: int, *, terms: int) -> Entry:
    """The catalogue's entry with fewer documents and terms."""
    return replace(entry("reuters10k"), rows=(documents, 0), shape=(terms,))


@pytest.fixture
def corpus() -> tuple[dict[int, set[str]], dict[int, dict[int, float]]]:
    """Topics and term weights of 300 invented documents, numbered as RCV1's are, from 2286 up."""
    rng = np.random.default_rng(0)
    topics: dict[int, set[str]] = {}
    vectors: dict[int, dict[int, float]] = {}
    for document in range(2286, 2586):
        roots = rng.choice(ROOTS, size=rng.choice([0, 1, 2], p=[0.1, 0.7, 0.2]), replace=False)
        topics[document] = set(roots.tolist()) | {"C15", "M14"}
        terms = np.unique((rng.zipf(1.4, 20) - 1) % 47236 + 1)
        vectors[document] = {int(term): float(rng.uniform(0.01, 0.5)) for term in terms}
    return topics, vectors


@pytest.fixture
def paths(corpus: tuple[dict[int, set[str]], dict[int, dict[int, float]]], tmp_path: Path) -> list[Path]:
    topics, vectors = corpus
    lines = [f"{topic} {document} 1\n" for document, found in topics.items() for topic in sorted(found)]
    written = [tmp_path / "rcv1-v2.topics.qrels.gz"]
    written[0].write_bytes(gzip.compress("".join(lines).encode()))
    documents = list(vectors)
    for part, name in enumerate(NAMES):
        lines = [
            f"{document}  " + " ".join(f"{term}:{weight!r}" for term, weight in vectors[document].items()) + "\n"
            for document in documents[part * 60 : (part + 1) * 60]
        ]
        written.append(tmp_path / name)
        written[-1].write_bytes(gzip.compress("".join(lines).encode()))
    return written


def test_only_documents_of_one_root_category_have_a_class(
    corpus: tuple[dict[int, set[str]], dict[int, dict[int, float]]], paths: list[Path]
) -> None:
    expected = {
        document: ROOTS.index((found & set(ROOTS)).pop())
        for document, found in corpus[0].items()
        if len(found & set(ROOTS)) == 1
    }
    assert single_roots(paths[0]) == expected
    assert 150 < len(expected) < 300


def test_the_sample_keeps_published_weights_of_the_most_frequent_training_terms(
    corpus: tuple[dict[int, set[str]], dict[int, dict[int, float]]], paths: list[Path]
) -> None:
    topics, vectors = corpus
    data = read_set(sample(150, terms=12), paths)
    assert data.test is not None
    assert (len(data.train), len(data.test), data.shape, data.n_classes) == (120, 30, (12,), 4)
    assert data.class_names == ROOTS
    assert isinstance(data.train.x, sp.csr_array)
    assert data.train.x.dtype == np.float32
    assert data.feature_names is not None

    # Find each row again by its weights and compare class and document frequency the slow way.
    terms = [int(name) for name in data.feature_names]
    rows = {tuple(np.float32(vector.get(term, 0)) for term in terms): document for document, vector in vectors.items()}
    found = []
    for part in (data.train, data.test):
        assert part.y is not None
        documents = [rows[tuple(row)] for row in part.x.toarray()]  # type: ignore[union-attr]
        assert documents == sorted(documents)
        assert [topics[document] & set(ROOTS) for document in documents] == [{ROOTS[y]} for y in part.y]
        found.append(documents)
    assert not set(found[0]) & set(found[1])
    frequency = {term: sum(term in vectors[document] for document in found[0]) for term in range(1, 47237)}
    assert terms == sorted(sorted(frequency, key=lambda term: (-frequency[term], term))[:12])


def test_stored_zeros_do_not_count_as_occurrences() -> None:
    x = sp.csr_array((np.array([0.0, 0.0, 1.0]), np.array([0, 0, 1]), np.array([0, 1, 2, 3])), shape=(3, 2))
    assert frequent_terms(x, 1).tolist() == [1]


@pytest.mark.parametrize("pairs", ["1:x", "1:0.5 2", "0:0.5", "47237:0.5"])
def test_a_bad_vector_is_named(pairs: str, paths: list[Path]) -> None:
    lines = gzip.decompress(paths[1].read_bytes()).decode().splitlines()
    broken = [f"{line.split()[0]}  {pairs}" for line in lines]
    paths[1].write_bytes(gzip.compress("\n".join(broken).encode()))
    with pytest.raises(UserError, match=r"vectors_train.dat.gz(, line 1: .* index:value|: data row 1 has feature)"):
        read_set(sample(150, terms=5), paths)
