"""Labels of a hostile hand: ``PiNDAClassifier`` learns the classes that are there, or says in a sentence why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from pinoise import PiNDA, PiNDAClassifier
from pinoise.evaluation import voting

ROWS = 24
X = np.random.default_rng(0).normal(size=(ROWS, 3))
HALF = np.arange(ROWS) % 2


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voting, "TREES", 3)
    monkeypatch.setattr(voting, "REPEATS", 1)
    monkeypatch.setitem(voting.STRENGTHS, "logistic", (0.01,))  # which takes few steps


def fitted(y: Any) -> PiNDAClassifier:
    embedder = PiNDA(4, hidden=8, epochs=1, batch_size=8, device="cpu")
    return PiNDAClassifier(embedder, random_state=0).fit(X, y)


def objects(*labels: Any) -> np.ndarray:
    """An array of these objects in turn."""
    y = np.empty(ROWS, dtype=object)
    for row in range(ROWS):
        y[row] = labels[row % len(labels)]
    return y


REFUSED: dict[str, tuple[Any, str]] = {
    "text of one class with None": (objects("a", None), "y has one class, 'a', and a classifier needs two or more"),
    "numbers with infinity": (np.where(HALF, np.inf, 1.0), "Input y contains infinity"),
    "numbers with minus infinity": (np.where(HALF, -np.inf, 1.0), "Input y contains infinity"),
    "objects with infinity": (objects(1.0, np.inf, None), "Input y contains infinity"),
    "two columns": (np.c_[HALF, HALF], "y should be a 1d array"),
    "a frame of two columns": (pd.DataFrame({"a": HALF, "b": HALF}), "y should be a 1d array"),
    "too few": (HALF[:5], "inconsistent numbers of samples"),
    "too many": (np.r_[HALF, HALF], "inconsistent numbers of samples"),
    "none at all": ([], "inconsistent numbers of samples"),
    "nothing": (None, "the target y is None"),
    "all -1": (-np.ones(ROWS), "y has no label"),
    "all nan": (np.full(ROWS, np.nan), "y has no label"),
    "all None": (objects(None), "y has no label"),
    "all masked": (np.ma.masked_array(HALF, mask=True), "y has no label"),
    "one class": (np.zeros(ROWS), "y has one class, 0.0"),
    "one class beside marks": (-HALF, "y has one class, 0, .* -1 marks rows without a label"),
    "one class of codes": (["\x1b[2J"] * ROWS, r"y has one class, '\\x1b\[2J'"),
    "one class of a long name": (["a" * 10**5] * ROWS, "y has one class, 'a{90,99}…"),
    "text and numbers": (objects("a", 1), "y mixes text and numbers"),
    "complex numbers": (HALF + 1j, "Complex data not supported"),
    "bytes": (np.array([b"a", b"b"] * (ROWS // 2)), "y holds a bytes_: labels must be text or whole numbers"),
    "dictionaries": (objects({"a": 1}, {"b": 2}), "y holds a dict: labels must be text or whole numbers"),
    "lists": (objects([1], [2]), "y holds a list"),
    "tuples": (objects((1, 2), (3, 4)), "y holds a tuple"),
    "arrays": (objects(np.zeros(2), np.ones(2)), "y holds a ndarray"),
    "objects": (objects(object()), "y holds a object"),
    "records": (np.zeros(ROWS, dtype=[("a", float)]), "y holds a void"),
    "measurements": (X[:, 0], "Unknown label type: continuous"),
    "numbers beyond 64 bits": (objects(10**30, 1), "Unknown label type"),
    "a word": ("hello", "y should be a 1d array"),
    "a number": (3, "y should be a 1d array"),
    "a set": (set(range(ROWS)), "y should be a 1d array"),
    "dates of one day": (np.array(["2020", "NaT"] * (ROWS // 2), dtype="M8[D]"), "y has one class"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_labels_that_make_no_classes_are_one_sentence(name: str) -> None:
    y, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=sentence) as refusal:
        fitted(y)
    assert len(str(refusal.value)) < 300


def test_a_sparse_column_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match=r"Sparse data was passed for y.* Use '\.toarray\(\)'"):
        fitted(sp.csr_array(HALF[:, None]))


ACCEPTED: dict[str, tuple[Any, list[Any]]] = {
    "text with None": (objects("a", "b", None), ["a", "b"]),
    "text with nan and pandas' own gaps": (objects("a", "b", np.nan, pd.NaT), ["a", "b"]),
    "truth values with None": (objects(True, False, None), [False, True]),
    "a masked array": (np.ma.masked_array(np.arange(ROWS) % 3, mask=np.arange(ROWS) % 3 == 2), [0, 1]),
    "text like a mark": (["-1", "1"] * (ROWS // 2), ["-1", "1"]),
    "empty text": (objects("", "b"), ["", "b"]),
    "escape codes": (objects("\x1b[2J", "b"), ["\x1b[2J", "b"]),
    "the largest numbers": (np.array([2**64 - 1, 1] * (ROWS // 2), dtype="u8"), [1, 2**64 - 1]),
    "a tensor that needs a gradient": (torch.tensor([0.0, 1.0] * (ROWS // 2), requires_grad=True), [0, 1]),
    "halves of numbers": (HALF.astype("f2"), [0, 1]),
}


@pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")
@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_labels_that_make_classes_are_learned(name: str) -> None:
    y, classes = ACCEPTED[name]
    model = fitted(y)
    assert model.classes_.tolist() == classes
    assert set(model.predict(X).tolist()) <= set(classes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
