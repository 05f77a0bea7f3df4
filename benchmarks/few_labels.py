"""The vote of ``PiNDAClassifier`` beside what a user would pick instead, with 2 to 50 labels of each class.

PINOISE_DATA=FOLDER python benchmarks/few_labels.py digits usps     # a quarter of the training rows is predicted
PINOISE_DATA=FOLDER python benchmarks/few_labels.py --test digits   # test rows are predicted: choose nothing by it

The embedding does not depend on labels, so a set has one for all draws of labels.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from pinoise import PiNDA
from pinoise.data import Dataset, load
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.estimator.voting import Vote, choose
from pinoise.evaluation import embed
from pinoise.evaluation.logistic import few_label_rows
from pinoise.experiments.sources import sample_rows, shrink_images

LABELS = (2, 5, 10, 50)  # of each class
DRAWS = 3
STEPS = 500
ROWS = 2000
MOST_BOOSTED = 4000  # labels × classes: above it, gradient boosting takes minutes and is left out

RIVALS: dict[str, Any] = {
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "gradient boosting": lambda: GradientBoostingClassifier(random_state=0),
    "RBF SVM": lambda: SVC(),
    "label spreading": lambda: LabelSpreading(kernel="knn"),
    "self-training": lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
}
SEMI_SUPERVISED = ("label spreading", "self-training")
VOTE = "PiNDAClassifier"


def parts(name: str, *, test: bool) -> Dataset:
    """Return a data set with its test rows, or with a quarter of its training rows in their place."""
    data = shrink_images(sample_rows(load(name), train=ROWS, test=ROWS if test else 1), most=32)
    if test:
        return data
    order, cut = np.random.default_rng(0).permutation(len(data.train)), 3 * len(data.train) // 4
    return Dataset(name, data.train.take(np.sort(order[:cut])), data.train.take(np.sort(order[cut:])))


def flat(x: Any) -> Any:
    """Return samples as rows of features."""
    return x if sp.issparse(x) else np.asarray(x[:]).reshape(len(x), -1)


def standardised(x: Any, standardizer: Standardizer) -> np.ndarray:
    """Return samples as rows of standardised features."""
    return embed(lambda batch: batch.flatten(1), make_rows(x, standardizer)).astype(np.float64)


def cells(name: str, *, test: bool) -> Iterator[dict[str, Any]]:
    """Yield the accuracies of all methods, for every number of labels and every draw of them."""
    data = parts(name, test=test)
    assert data.test is not None
    train, other = data.train, data.test
    assert train.y is not None
    samples, others = flat(train.x), flat(other.x)
    standardizer = Standardizer.fit(samples, scaling="auto")
    X, new = standardised(samples, standardizer), standardised(others, standardizer)
    epochs = max(1, STEPS // max(1, len(X) // 256))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small sets are one batch
        embedder = PiNDA(epochs=epochs, random_state=0).fit(samples)
    raw, held_out = X.shape[1], embedder.transform(others)
    for labels in LABELS:
        for draw in range(DRAWS):
            rows = few_label_rows(train.y, labels_per_class=labels, draw=draw, seed=0)
            known, y = np.unique(train.y[rows], return_inverse=True)
            Z, start = embedder.transform(samples[rows]), time.perf_counter()
            vote = Vote(choose(Z, y, raw=raw, seed=0).voters, Z, y, raw=raw, seed=0)
            seconds = time.perf_counter() - start
            found = known[vote.probabilities(held_out).argmax(axis=1)]
            accuracy = {VOTE: float(np.mean(found == other.y))}
            some = np.full(len(X), -1)
            some[rows] = train.y[rows]
            for rival, make in RIVALS.items():
                if rival == "gradient boosting" and len(rows) * len(known) > MOST_BOOSTED:
                    continue
                given = (X, some) if rival in SEMI_SUPERVISED else (X[rows], train.y[rows])
                accuracy[rival] = float(np.mean(make().fit(*given).predict(new) == other.y))
            yield {"data": name, "labels": labels, "draw": draw, "seconds": seconds, "accuracy": accuracy}


def summary(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line per number of labels: mean accuracies, the vote's mean rank, and how often it is near the best."""
    for labels in LABELS:
        sets = sorted({cell["data"] for cell in found if cell["labels"] == labels})
        ranks, gaps, means = [], [], []
        for name in sets:
            own = [cell["accuracy"] for cell in found if (cell["data"], cell["labels"]) == (name, labels)]
            mean = {method: float(np.mean([cell[method] for cell in own])) for method in own[0]}
            rivals = [value for method, value in mean.items() if method != VOTE]
            ranks.append(1 + sum(value > mean[VOTE] for value in rivals))
            gaps.append(mean[VOTE] - max(rivals))
            means.append(mean)
        if not sets:
            continue
        shown = ", ".join(
            f"{method} {100 * np.mean([mean[method] for mean in means if method in mean]):.1f}"
            for method in (VOTE, *RIVALS)
            if any(method in mean for mean in means)
        )
        near = np.mean(np.array(gaps) >= -0.01)
        yield f"{labels} labels: {shown}; mean rank {np.mean(ranks):.2f}, within a point of the best on {near:.0%}"


def main() -> None:
    """Print a line per set as it is done, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", help="names of the catalogue")
    parser.add_argument("--test", action="store_true", help="score on test rows")
    parser.add_argument("--out", type=Path, help="a JSON file for all cells")
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name in arguments.sets:
        found += cells(name, test=arguments.test)
        print(f"{name}: choosing took {np.mean([c['seconds'] for c in found if c['data'] == name]):.1f} s", flush=True)
    print("\n".join(summary(found)))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
