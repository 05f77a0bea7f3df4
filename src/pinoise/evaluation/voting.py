"""A classifier for few labels: models on the raw, the joined and the learned features vote, weighted by validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Features = Literal["raw", "joined", "learned"]
ModelName = Literal["logistic", "trees"]
Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]
"""Class numbers from 0, one per row; every class has a row."""

FOLDS = 5
REPEATS = 2  # of the folds, where labels are few
FEW = 200  # labels: with more, the folds are dealt once
MOST = 500  # labels that take part in choosing; the chosen models are fitted on all

STRENGTHS: dict[ModelName, tuple[float | None, ...]] = {
    "logistic": (1.0, 0.1, 10.0, 0.01, 100.0),  # C, the default first: it wins ties
    "trees": (None,),
}
VARIANCE = 256.0
TREES = 100
TREES_JUDGED = 30  # of a model that is only validated: enough to know its accuracy, and most of the time of choosing
SHARPNESS = 2.0  # of the weights; chosen on validation rows, where 1 to 4 do nearly the same
LEAST_WEIGHT = 0.01  # of a voter; below it, a model costs more than it adds


class Candidate(NamedTuple):
    """A model of some strength on some features.

    >>> str(Candidate("joined", "logistic", 0.1)), str(Candidate("raw", "trees", None))
    ('logistic (C = 0.1) on joined', 'trees on raw')
    """

    features: Features
    model: ModelName
    strength: float | None

    def __str__(self) -> str:
        strength = "" if self.strength is None else f" (C = {self.strength:g})"
        return f"{self.model}{strength} on {self.features}"

    def columns(self, raw: int) -> slice:
        """Return its columns of an embedding whose first ``raw`` ones are the sample itself."""
        return {"raw": slice(0, raw), "joined": slice(None), "learned": slice(raw, None)}[self.features]


class Voter(NamedTuple):
    """A candidate with its weight, and its accuracy and log loss on rows that it was not fitted on."""

    candidate: Candidate
    weight: float
    accuracy: float
    log_loss: float

    def __str__(self) -> str:
        if np.isnan(self.accuracy):
            return f"{self.weight:.2f} {self.candidate}: not validated"
        return f"{self.weight:.2f} {self.candidate}: accuracy {self.accuracy:.3f}, log loss {self.log_loss:.3f}"


def families(raw: int) -> list[list[Candidate]]:
    """Return the candidates, those that differ only in strength together; the first see the whole embedding.

    Args:
        raw: how many columns of the embedding are the sample itself; 0 if it is the learned part alone.

    >>> [str(strengths[0]) for strengths in families(0)]
    ['logistic (C = 1) on learned', 'trees on learned']
    >>> [len(strengths) for strengths in families(64)]
    [5, 5, 5, 1, 1]
    """
    of: dict[ModelName, tuple[Features, ...]] = {"logistic": ("joined", "learned", "raw"), "trees": ("joined", "raw")}
    if not raw:
        of = {"logistic": ("learned",), "trees": ("learned",)}
    return [
        [Candidate(columns, model, strength) for strength in STRENGTHS[model]]
        for model, features in of.items()
        for columns in features
    ]


def deal_folds(y: Classes, folds: int, *, seed: int | Sequence[int]) -> Classes:
    """Return the fold of every row: classes are dealt out one after another, so they differ by at most one row a fold.

    A class of two rows or more is never in one fold alone. Unlike scikit-learn's, folds may outnumber a class's rows.

    >>> deal_folds(np.array([0, 0, 1, 1]), 4, seed=0).tolist()
    [0, 1, 2, 3]
    """
    shuffled = np.random.default_rng(seed).permutation(len(y))
    fold = np.empty(len(y), dtype=np.int64)
    fold[shuffled[np.argsort(y[shuffled], kind="stable")]] = np.arange(len(y)) % folds
    return fold


def rotated(X: Floats) -> tuple[Floats, Floats | None]:
    """Return rows (n, d) in coordinates of the space that they span, (n, n), and its basis (d, n), if n < d.

    A linear model with an L2 penalty is the same in these coordinates, and faster.

    >>> X, basis = rotated(np.array([[3.0, 0.0, 4.0]]))
    >>> abs(X).round(3).tolist(), abs(basis[:, 0]).round(3).tolist()
    ([[5.0]], [0.6, 0.0, 0.8])
    """
    n, d = X.shape
    if n >= d:
        return X, None
    basis = np.linalg.qr(X.T)[0]
    return X @ basis, basis


def unit_factor(X: Floats) -> float:
    """Return what to multiply rows by so that their total variance is 256, which C is meant for.

    >>> unit_factor(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    16.0
    """
    variance = float(X.var(axis=0).sum())
    return float(np.sqrt(VARIANCE / variance)) if variance > 0 else 1.0


def fit_model(candidate: Candidate, X: Floats, y: Classes, *, seed: int) -> Any:
    """Return the model, fitted on all rows of its own columns."""
    if candidate.model != "logistic":
        return _fitted(candidate, X, y, seed=seed, trees=TREES)
    factor = unit_factor(X)
    rows, basis = rotated(factor * X)
    model = _fitted(candidate, rows, y, seed=seed, trees=TREES)
    model.coef_ = factor * (model.coef_ if basis is None else model.coef_ @ basis.T)
    model.n_features_in_ = X.shape[1]
    return model


def _fitted(candidate: Candidate, X: Floats, y: Classes, *, seed: int, trees: int) -> Any:
    # These import much that the doors do not need.
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression

    if candidate.model == "trees":
        model: Any = ExtraTreesClassifier(trees, random_state=seed)
    else:
        model = LogisticRegression(C=candidate.strength, max_iter=1000)
    # Small fits lose by sharing their work among threads. One that has not quite converged is judged as it is.
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")  # two labels of each
        return model.fit(X, y)


def held_out_probabilities(candidate: Candidate, X: Floats, y: Classes, fold: Classes, *, seed: int) -> Floats:
    """Return p(class) of every row, (n, K), by a model that was fitted without its fold.

    The only row of a class is never held out, and its probabilities are nan.
    """
    alone = np.bincount(y)[y] == 1
    result = np.full((len(y), int(y.max()) + 1), np.nan)
    if candidate.model == "logistic":
        X, _ = rotated(unit_factor(X) * X)
    for each in np.unique(fold[~alone]):
        out = (fold == each) & ~alone
        model = _fitted(candidate, X[~out], y[~out], seed=seed, trees=TREES_JUDGED)
        result[out] = model.predict_proba(X[out])
    return result


def score(candidate: Candidate, Z: Floats, y: Classes, *, raw: int, seed: int) -> tuple[float, float]:
    """Return accuracy and mean log loss on rows that were held out; nan where none could be."""
    X = np.ascontiguousarray(Z[:, candidate.columns(raw)])
    hits, losses = [], []
    for repeat in range(REPEATS if len(y) <= FEW else 1):
        fold = deal_folds(y, min(FOLDS, len(y)), seed=[seed, repeat])
        p = held_out_probabilities(candidate, X, y, fold, seed=seed)
        seen = ~np.isnan(p[:, 0])
        hits.append(p[seen].argmax(axis=1) == y[seen])
        losses.append(-np.log(np.maximum(p[seen, y[seen]], 1e-6)))
    if not len(hits[0]):
        return float("nan"), float("nan")
    return float(np.mean(hits)), float(np.mean(losses))


def weights(accuracy: Floats, n: int) -> Floats:
    """Return weights in proportion to exp(2 √n · accuracy): with n labels, accuracy is known to about 1/√n.

    >>> weights(np.array([0.9, 0.9, 0.4]), 4).round(2).tolist(), weights(np.array([0.9, 0.8]), 400).round(2).tolist()
    ([0.47, 0.47, 0.06], [0.98, 0.02])
    """
    unnormalised = np.exp(SHARPNESS * np.sqrt(n) * (accuracy - accuracy.max()))
    return np.asarray(unnormalised / unnormalised.sum())


def rows_for_choosing(y: Classes, most: int, *, seed: int) -> Classes:
    """Return at most about ``most`` rows, every class in its proportion and with two rows where it has them.

    >>> y = np.repeat([0, 1, 2], [6, 20, 1])
    >>> np.bincount(y[rows_for_choosing(y, 9, seed=0)]).tolist()
    [2, 7, 1]
    """
    if len(y) <= most:
        return np.arange(len(y))
    random, chosen = np.random.default_rng(seed), []
    for number, count in enumerate(np.bincount(y)):
        kept = min(count, max(2, round(count * most / len(y))))
        chosen.append(random.permutation(np.flatnonzero(y == number))[:kept])
    return np.sort(np.concatenate(chosen))


def least_loss(family: Sequence[Voter]) -> Voter:
    """Return the candidate of least log loss, the first of equal ones and where nothing could be validated."""
    return min(family, key=lambda voter: np.nan_to_num(voter.log_loss))


def choose(Z: Floats, y: Classes, *, raw: int, seed: int) -> tuple[Voter, ...]:
    """Judge every candidate by cross-validation on labelled rows; of every family that of least log loss has a weight.

    Where no row can be held out, all families vote alike, each with its default strength.

    Args:
        Z: the embedding of the labelled rows.
        y: their class numbers.
        raw: how many columns of Z, the first ones, are the sample itself.
        seed: of folds and trees.
    """
    rows = rows_for_choosing(y, MOST, seed=seed)
    known, numbers = Z[rows], y[rows]
    judged = [
        [Voter(candidate, 0.0, *score(candidate, known, numbers, raw=raw, seed=seed)) for candidate in family]
        for family in families(raw)
    ]
    best = [least_loss(family) for family in judged]
    n = int((np.bincount(numbers)[numbers] > 1).sum())
    w = weights(np.array([voter.accuracy if n else 0.0 for voter in best]), n)
    w = np.where(w < LEAST_WEIGHT, 0, w) / w[w >= LEAST_WEIGHT].sum()
    share = dict(zip((voter.candidate for voter in best), w.tolist(), strict=True))
    return tuple(voter._replace(weight=share.get(voter.candidate, 0.0)) for family in judged for voter in family)


class Vote:
    """The weighted mean of the voters' probabilities.

    Args:
        candidates: of which those with a weight vote.
        Z: the embedding of the labelled rows.
        y: their class numbers.
        raw: as in ``choose``.
        seed: as in ``choose``.

    >>> Z, y = np.array([[0.0, 0.0], [0.0, 0.1], [4.0, 4.0], [4.0, 4.1]]), np.array([0, 0, 1, 1])
    >>> candidates = choose(Z, y, raw=1, seed=0)
    >>> Vote(candidates, Z, y, raw=1, seed=0).probabilities(np.array([[-1.0, 0.0], [5.0, 4.0]])).argmax(axis=1).tolist()
    [0, 1]
    """

    def __init__(self, candidates: Sequence[Voter], Z: Floats, y: Classes, *, raw: int, seed: int) -> None:
        self.candidates, self.Z, self.y, self.raw, self.seed = tuple(candidates), Z, y, raw, seed
        voting = [candidate for candidate in candidates if candidate.weight > 0]
        self.voters = tuple(sorted(voting, key=lambda voter: -voter.weight))  # the heaviest first
        self.models = [fit_model(voter.candidate, self._seen_by(voter, Z), y, seed=seed) for voter in self.voters]

    def _seen_by(self, voter: Voter, Z: Floats) -> Floats:
        return np.ascontiguousarray(Z[:, voter.candidate.columns(self.raw)])

    def probabilities(self, Z: Floats) -> Floats:
        """Return p(class) of every row of an embedding, (n, K)."""
        each = zip(self.voters, self.models, strict=True)
        return np.asarray(sum(voter.weight * model.predict_proba(self._seen_by(voter, Z)) for voter, model in each))
