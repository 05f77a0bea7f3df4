"""Reuters-10k: a sample of RCV1-v2 with its four root categories, from the vectors that LYRL2004 published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pinoise.data.catalogue.facts import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import GIB, open_compressed
from pinoise.data.splitting import stratified_rows
from pinoise.errors import UserError

ROOTS = ("CCAT", "ECAT", "GCAT", "MCAT")
_TERMS = 47_236  # numbered from 1

Vector = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]  # term numbers, weights


def read_reuters10k(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """Read the topics and the five vector files, and draw the sample.

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
    x = _matrix(_vectors(vectors, set(chosen.tolist())), chosen.tolist())
    y = np.array([roots[document] for document in chosen.tolist()], dtype=np.int64)
    train, test = stratified_rows(y)
    kept = frequent_terms(x[train], entry.shape[0])
    return Dataset(
        entry.name,
        train=Part(sp.csr_array(x[train][:, kept]), y[train]),
        test=Part(sp.csr_array(x[test][:, kept]), y[test]),
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
    masks: dict[int, int] = {}
    with open_compressed(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                category, document, _ = line.split()
                if category in bits:
                    masks[int(document)] = masks.get(int(document), 0) | bits[category]
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


def _vectors(paths: Sequence[Path], wanted: set[int]) -> dict[int, Vector]:
    """Return the wanted documents of lines such as ``2286  864:0.0497 1523:0.0447``."""
    found: dict[int, Vector] = {}
    for path in paths:
        with open_compressed(path, limit=8 * GIB) as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    head, _, rest = line.partition(b" ")
                    if int(head) in wanted:
                        found[int(head)] = _vector(rest)
                except ValueError as error:
                    raise UserError(
                        f"{path}, line {number}: {line[:60]!r} was found instead of a document's number "
                        "and its term:weight pairs."
                    ) from error
    missing = len(wanted) - len(found)
    if missing:
        raise UserError(
            f"{missing} of {len(wanted)} documents have no vector in {', '.join(map(str, paths))}: "
            "are the files complete?"
        )
    return found


def _vector(pairs: bytes) -> Vector:
    numbers = np.array(pairs.replace(b":", b" ").split(), dtype=np.float64).reshape(-1, 2)
    terms = numbers[:, 0].astype(np.int32) - 1
    if terms.size and (terms.min() < 0 or terms.max() >= _TERMS):
        raise ValueError("term number out of range")
    return terms, numbers[:, 1].astype(np.float32)


def _matrix(vectors: dict[int, Vector], order: list[int]) -> sp.csr_array:
    indptr = np.cumsum([0, *(len(vectors[document][0]) for document in order)])
    indices = np.concatenate([vectors[document][0] for document in order])
    data = np.concatenate([vectors[document][1] for document in order])
    return sp.csr_array((data, indices, indptr), shape=(len(order), _TERMS))
