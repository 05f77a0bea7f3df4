"""``PiNDAClassifier`` beside what a user would pick instead, with 2 to 50 labels of each class.

PINOISE_DATA=FOLDER python benchmarks/few_labels.py              # a quarter of the training rows is predicted
PINOISE_DATA=FOLDER python benchmarks/few_labels.py digits usps  # on these sets alone
PINOISE_DATA=FOLDER python benchmarks/few_labels.py --test       # test rows of all sets: choose nothing by it

Sizes are those of the suite ``vectors``. The embedding does not depend on labels, so a set has one for all draws of
them. A set takes part with as many labels as half of its classes have. Results are written set by set, and a run that
was stopped goes on. No rival is left out: gradient boosting, the slowest, has 30 small trees per class. UMAP takes part
where umap-learn is installed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pinoise.data.dataset import Dataset
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError
from pinoise.evaluation import few_label_accuracies
from pinoise.evaluation.few_labels import FewLabelClassifier
from pinoise.evaluation.logistic import (
    LABELS_PER_CLASS,
    UNKNOWN,
    Classifier,
    Predict,
    few_label_rows,
    fit_logistic,
    plain,
)
from pinoise.evaluation.rivals import CLASSIFIERS, REDUCTIONS
from pinoise.evaluation.student import MOST_UNLABELLED, spaced_rows
from pinoise.experiments.plans import plan, with_steps
from pinoise.experiments.ranking import mean_ranks
from pinoise.experiments.recipes import OURS, installed
from pinoise.experiments.scoring import LabelledRows, PreparedSet, embedded, fit_encoder
from pinoise.experiments.sources import open_compared, sample_rows
from pinoise.files import read_json, write_json
from pinoise.modes import flushed_denormals
from pinoise.training.build import build_embedding
from pinoise.training.callbacks import Quiet
from pinoise.training.folder import describe_environment
from suite import shrink_images
from validation import SUITE, validation

LABELS = (2, 5, 10, 50)  # of each class
DRAWS = 3
SEED = 0
NEAR = 0.01  # of the best rival
RIVALS: Mapping[str, Classifier] = {"logistic": plain, **CLASSIFIERS}
REDUCED = [name for name in REDUCTIONS if installed(name)]  # before logistic regression
VOTE = "PiNDAClassifier"

Accuracies = Mapping[str, Sequence[float]]  # of every method, under every draw


def parts(name: str, *, test: bool) -> Dataset:
    """Return a data set with its test rows, or with a quarter of its training rows in their place."""
    if not test:
        return validation(name)
    opened = open_compared([name], ReadOptions())[0]
    return shrink_images(sample_rows(opened, train=SUITE.rows, test=SUITE.rows), most=SUITE.pixels)


def fit_vote(train: np.ndarray, y: npt.NDArray[np.int64], *, raw: int, seed: int) -> FewLabelClassifier:
    """Return the vote and its student on an embedding whose first ``raw`` columns are the sample."""
    known, others = np.flatnonzero(y != UNKNOWN), np.flatnonzero(y == UNKNOWN)
    unlabelled = train[spaced_rows(others, MOST_UNLABELLED)]
    numbers = np.unique(y[known], return_inverse=True)[1]
    # float64, as the estimator has them
    Z, rest = train[known].astype(float), unlabelled.astype(float)
    return FewLabelClassifier.fit(Z, numbers, rest, classes=range(numbers.max() + 1), raw=raw, seed=seed)


def taught(raw: int) -> Classifier:
    """Return ``fit_vote`` as a classifier."""

    def prepare(train: np.ndarray, test: np.ndarray) -> Predict:
        def predict(y: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int64]:
            p = fit_vote(train, y, raw=raw, seed=seed).probabilities(test.astype(float))
            found: npt.NDArray[np.int64] = np.unique(y[y != UNKNOWN])[p.argmax(axis=1)]
            return found

        return predict

    return prepare


def calibration_error(p: np.ndarray, y: npt.NDArray[np.int64], bins: int = 10) -> float:
    """Return the mean gap between confidence and accuracy over bins of equally many rows, sorted by confidence.

    >>> p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    >>> round(calibration_error(p, np.array([0, 0, 0, 1]), bins=2), 3)  # 0.9 and right, 0.6 and right half of the time
    0.1
    """
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    parts = np.array_split(np.argsort(confidence, kind="stable"), bins)
    return float(
        sum(len(part) * abs(confidence[part].mean() - right[part].mean()) for part in parts if len(part)) / len(y)
    )


def calibration(joined: LabelledRows, features: LabelledRows, *, raw: int) -> dict[str, dict[str, float]]:
    """Return how far probabilities with 10 labels of each class can be trusted: the vote's, and plain regression's."""
    rows = few_label_rows(joined.y_train, labels_per_class=LABELS_PER_CLASS, draw=0, seed=SEED)
    classes, numbers = np.unique(joined.y_train[rows], return_inverse=True)
    revealed = np.full(len(joined.y_train), UNKNOWN, dtype=np.int64)
    revealed[rows] = numbers
    seen = np.isin(joined.y_test, classes)  # no probability can be given to another class
    y = np.searchsorted(classes, joined.y_test[seen])
    vote = fit_vote(joined.train, revealed, raw=raw, seed=SEED).probabilities(joined.test[seen].astype(float))
    plain_model = fit_logistic(features.train[rows], numbers)
    found = {VOTE: vote, "logistic": plain_model.predict_proba(features.test[seen])}
    return {
        name: {
            "error": round(calibration_error(p, y), 4),
            "log_loss": round(float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()), 4),
        }
        for name, p in found.items()
    }


def numbers_of_labels(y: np.ndarray) -> list[int]:
    """Return how many labels of each class are drawn: as many as half of the classes have.

    >>> numbers_of_labels(np.repeat([0, 1, 2], [3, 7, 90]))
    [2, 5]
    """
    return [labels for labels in LABELS if labels <= np.median(np.unique(y, return_counts=True)[1])]


def study(data: Dataset) -> dict[str, Any]:
    """Return the accuracies of all methods for every number of labels, and the seconds that each method took."""
    settings = plan([OURS], [SEED], settings=SUITE.settings)[OURS, SEED]
    settings = with_steps(settings, SUITE.steps, rows=len(data.train))
    prepared = PreparedSet(data, settings.data.scaling)
    start = time.perf_counter()
    encoder, _ = fit_encoder(OURS, settings, prepared.standardizer, prepared.train, Quiet())
    encode = build_embedding(encoder, "joined", prepared.standardizer, prepared.train)
    joined = embedded(encode, data, prepared.train, prepared.test)
    seconds = {"embedding": time.perf_counter() - start}
    methods = {VOTE: (joined, taught(prepared.features.train.shape[1]))}
    methods |= {name: (prepared.features, rival) for name, rival in RIVALS.items()}
    methods |= {name: (prepared.reduced(name, ())[0], plain) for name in REDUCED}
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for name, (rows, classifier) in methods.items():
        start = time.perf_counter()
        for labels in numbers_of_labels(rows.y_train):
            found.setdefault(str(labels), {})[name] = few_label_accuracies(
                *rows, classifier=classifier, labels_per_class=labels, draws=DRAWS, seed=SEED
            )
        seconds[name] = time.perf_counter() - start
    raw = prepared.features.train.shape[1]
    return {
        "accuracy": found,
        "calibration": calibration(joined, prepared.features, raw=raw),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }


def picked_elsewhere(accuracies: Accuracies) -> float:
    """Return the mean accuracy of a clairvoyant: for each draw, the method with the best *test* score in the others.

    No user can choose so well, since it looks at test labels. What it misses of the best mean is the chance in draws.

    >>> picked_elsewhere({"svm": [0.9, 0.5, 0.5], "forest": [0.6, 0.6, 0.6]})  # the forest, then twice the SVM
    0.5333333333333333
    """
    table = np.array(list(accuracies.values()))  # (methods, draws)
    elsewhere = table.sum(axis=1, keepdims=True) - table
    return float(table[elsewhere.argmax(axis=0), np.arange(table.shape[1])].mean())


def summarise(sets: Mapping[str, Mapping[str, Accuracies]]) -> dict[str, Any]:
    """Return, per number of labels, mean accuracies and ranks, and how often the vote is near the best rival.

    Accuracies are means over draws before methods are compared. ``clairvoyant`` is how often one is near that picks
    among the rivals by their test scores in other draws.

    >>> found = summarise({"toy": {"2": {VOTE: [0.5, 0.7], "svm": [0.6, 0.61]}}})["2"]
    >>> found["near"], found["clairvoyant"], round(found["worst"], 3), found["rank"]
    (1.0, 1.0, -0.005, {'svm': 1.0, 'PiNDAClassifier': 2.0})
    """
    result = {}
    for labels in map(str, LABELS):
        table = {
            name: {method: float(np.mean(draws)) for method, draws in found[labels].items()}
            for name, found in sets.items()
            if labels in found
        }
        if not table:
            continue
        best = {name: max(value for method, value in row.items() if method != VOTE) for name, row in table.items()}
        gaps = [row[VOTE] - best[name] for name, row in table.items()]
        rivals = {name: {m: draws for m, draws in sets[name][labels].items() if m != VOTE} for name in table}
        picked = [picked_elsewhere(rivals[name]) - best[name] for name in table]
        ranks = mean_ranks(table)
        result[labels] = {
            "sets": len(table),
            "accuracy": {method: round(float(np.mean([row[method] for row in table.values()])), 4) for method in ranks},
            "rank": {method: round(rank, 2) for method, rank in sorted(ranks.items(), key=lambda item: item[1])},
            "near": round(float(np.mean(np.array(gaps) >= -NEAR)), 3),
            "clairvoyant": round(float(np.mean(np.array(picked) >= -NEAR)), 3),
            "worst": round(min(gaps), 4),
        }
    return result


def summaries(sets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of all sets, and of those that no choice was made on."""
    found = {name: result["accuracy"] for name, result in sets.items()}
    held_out = {name: found[name] for name in found if name in SUITE.held_out}
    return {"all": summarise(found), "held out": summarise(held_out)}


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per number of labels."""
    for half, table in summary.items():
        for labels, row in table.items():
            ranks = ", ".join(
                f"{method} {rank:.2f} ({100 * row['accuracy'][method]:.1f})" for method, rank in row["rank"].items()
            )
            yield (
                f"{half}, {labels} labels, {row['sets']} sets: mean rank (accuracy) {ranks}; within a point of the "
                f"best rival on {row['near']:.0%} (a clairvoyant choice of rival: {row['clairvoyant']:.0%}), at worst "
                f"{100 * row['worst']:+.1f}"
            )


def main() -> None:
    """Write the results after every set, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="names of the catalogue; the suite's if none")
    parser.add_argument("--test", action="store_true", help="score on test rows")
    parser.add_argument("--out", type=Path, help="the JSON file, in benchmarks/results if not given")
    arguments = parser.parse_args()
    part = "test" if arguments.test else "validation"
    out = arguments.out or Path(__file__).parent / "results" / f"few_labels_{part}.json"
    settings = {"part": part, "labels": list(LABELS), "draws": DRAWS, "seed": SEED, "rivals": [*RIVALS, *REDUCED]}
    settings |= {"rows": SUITE.rows, "steps": SUITE.steps, "settings": SUITE.settings}
    kept = read_json(out) if out.exists() else {"settings": settings, "sets": {}}
    if kept["settings"] != settings:
        raise UserError(f"{out} has results of other settings: remove it, or give another file with --out.")
    sets: dict[str, Any] = kept["sets"]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="The number of unique classes is greater")  # two labels of each
    with flushed_denormals():
        for name in arguments.sets or (SUITE.sources if arguments.test else SUITE.chosen_on):
            if name in sets:
                continue
            sets[name] = study(parts(name, test=arguments.test))
            write_json(out, {"settings": settings, "sets": sets, "environment": describe_environment()})
            print(f"{name}: {sum(sets[name]['seconds'].values()):.0f} s", flush=True)
    print("\n".join(lines(summaries(sets))))


if __name__ == "__main__":
    main()
