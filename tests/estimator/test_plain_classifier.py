"""A plain scikit-learn classifier on what ``PiNDA`` gives has the few-label accuracy that the README prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from pinoise import PiNDA
from pinoise.data import load
from pinoise.evaluation.logistic import few_label_rows

README = Path(__file__).parents[2] / "README.md"


def printed(method: str) -> float:
    """Return the few-label accuracy of a row of the demo's table."""
    row = next(line for line in README.read_text(encoding="utf-8").splitlines() if re.match(rf"{method} +\d", line))
    return float(re.findall(r"(\d+\.\d) ±", row)[3])  # after kNN, SR and LR


@pytest.mark.slow
def test_a_pipeline_of_an_embedding_and_logistic_regression_reproduces_the_readme() -> None:
    data = load("digits")
    assert data.test is not None
    assert data.train.y is not None
    X, y = np.asarray(data.train.x), data.train.y
    accuracies = []
    for seed in (0, 1):
        embedding = PiNDA(hidden=512, epochs=60, random_state=seed).fit(X)  # as the demo's, and without labels
        for draw in range(10):
            rows = few_label_rows(y, labels_per_class=10, draw=draw, seed=seed)
            pipeline = make_pipeline(FrozenEstimator(embedding), LogisticRegression())
            accuracies.append(100 * pipeline.fit(X[rows], y[rows]).score(np.asarray(data.test.x), data.test.y))
    assert np.mean(accuracies) == pytest.approx(printed("PiNDA"), abs=0.5)
    assert np.mean(accuracies) > printed("raw features") + 3
