"""Bad arrays, frames, sparse matrices and parameters for the scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from tests.hostile.case import Case, Expect, Generator, Wrong, generator
from tests.hostile.mutations import VALUES
from tests.hostile.reference import numbers

Data = Callable[[Generator], Any]
METHODS = ("fit", "transform", "augment", "noise_scale")
PARAMETERS = (
    *("n_components", "embedding", "encoder", "image_shape", "hidden", "method", "objective", "distribution", "mean"),
    *("generator", "pairing", "augmentations", "neighbours", "penalty", "initial_scale", "scaling", "epochs"),
    *("batch_size", "learning_rate", "noise_learning_rate", "temperature", "device", "random_state", "verbose"),
    *("noise", "covariance", "amplitude"),
)
OTHER_TYPES = (
    *("of objects", "of a dictionary", "of a number", "of a matrix", "with names of two types", "with two levels"),
    *("a torch tensor of bfloat16", "of a sparse torch tensor", "of None", "of records"),
)
"""Samples that are no numbers at all, for which scikit-learn's own checks raise a TypeError."""

ODD = (*VALUES, float("nan"), float("inf"), np.float64("nan"), np.int64(3), object(), b"x", 10**9, 1j, range(3), print)


def small(**parameters: Any) -> Any:
    """Return a small estimator."""
    from pinoise import PiNDA

    known = {"n_components": 4, "hidden": 8, "epochs": 1, "batch_size": 8, "random_state": 0, "device": "cpu"}
    return PiNDA(**{**known, **parameters})


def state() -> tuple[Any, ...]:
    """Return everything global that a fit may not touch."""
    return (
        torch.get_rng_state().tolist(),
        str(np.random.get_state()),  # noqa: NPY002 - it is the global one that is looked at
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
    )


def use(method: str, X: Any) -> None:
    """Call a method with samples, and check that the result is finite and nothing global has moved."""
    model = small()
    before = state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method != "fit":
            model.fit(numbers())
        result = getattr(model, method)(X)
        if method == "fit":
            result = model.transform(X)
    if not np.isfinite(result).all():
        raise Wrong(f"{method}: {(~np.isfinite(result)).sum()} entries are not finite")
    if state() != before:
        raise Wrong(f"{method} changed global state")


def put(value: Any, kind: str = "f8") -> Data:
    """Return the sound array with one other value in a random place."""

    def make(rng: Generator) -> Any:
        x = numbers().astype(kind)
        x[int(rng.integers(len(x))), int(rng.integers(3))] = value
        return x

    return make


def frame(make: Callable[[Any, Any], Any]) -> Data:
    """Return a frame of pandas, made from the sound one."""

    def build(rng: Generator) -> Any:
        import pandas as pd

        return make(pd, pd.DataFrame(numbers(), columns=list("abc")))

    return build


def samples() -> list[tuple[str, Data, Expect]]:
    """Return bad samples, and what is expected of them in every method."""
    x = numbers()
    no: Expect = "sentence"
    found: list[tuple[str, Data, Expect]] = [
        *((f"{value} in {kind}", put(value, kind), no) for value in (np.inf, -np.inf) for kind in ("f8", "f4")),
        *((f"nan in {kind}", put(np.nan, kind), "either") for kind in ("f8", "f4")),  # filled in training
        *((f"{value:g} in f8", put(value), "either") for value in (1e155, 1e200, -1e300, 1e38, 1e-320)),
        ("3e38 in f4", put(3e38, "f4"), "either"),
        *((f"type {kind}", partial(typed, kind), "either") for kind in ("?", "i1", "u8", "f2", "g", ">f8")),
        ("complex numbers", lambda rng: x + 1j, no),
        ("text", lambda rng: x.astype("U9"), "either"),
        ("words", lambda rng: np.array([["a", "b", "c"]] * 24), no),
        ("bytes", lambda rng: x.astype("S9"), "either"),
        ("times", lambda rng: x.astype("M8[s]"), "either"),
        ("objects", lambda rng: np.array([[object()] * 3] * 24), no),
        ("None", lambda rng: None, no),
        ("a number", lambda rng: 3, no),
        ("a string", lambda rng: "hello", no),
        ("a dictionary", lambda rng: {"a": 1}, no),
        ("an empty list", lambda rng: [], no),
        ("no rows", lambda rng: x[:0], no),
        ("no columns", lambda rng: x[:, :0], no),
        ("one axis", lambda rng: x[0], no),
        ("three axes", lambda rng: x.reshape(8, 3, 3), no),
        ("rows of different lengths", lambda rng: [[1, 2, 3], [1, 2]], no),
        ("integers beyond 64 bits", lambda rng: [[10**30, 1, 2], [1, 2, 3], [4, 5, 6]], "either"),
        ("integers beyond floats", lambda rng: [[10**400, 1, 2], [1, 2, 3], [4, 5, 6]], no),
        ("a masked array", lambda rng: np.ma.masked_greater(x, 1), no),
        ("a matrix", lambda rng: np.matrix(x), "either"),
        ("records", lambda rng: np.zeros(9, dtype=[("a", float)]), no),
        ("a view backwards", lambda rng: x[::-1, ::-1], "right"),
        ("read-only memory", lambda rng: _readonly(x), "right"),
        ("an overlapping view", lambda rng: np.broadcast_to(x[:, None, 0], (24, 3)), "right"),
        ("constant columns", lambda rng: np.ones((24, 3)), "either"),
        ("the largest integers", lambda rng: np.array([[2**63 - 1, 1, 2], [1, 5, 3], [4, 5, 6]], dtype="i8"), "either"),
        ("a sparse matrix with NaN", lambda rng: sp.csr_array(put(np.nan)(rng)), no),
        ("a sparse matrix with inf", lambda rng: sp.csr_array(put(np.inf)(rng)), no),
        ("a sparse matrix of complex numbers", lambda rng: sp.csr_array(x + 1j), no),
        ("a sparse matrix of truth values", lambda rng: sp.csr_array(x > 0), "either"),
        ("a sparse matrix of COO with duplicates", _doubled, "right"),
        ("a sparse matrix with bad indices", _broken_sparse, no),
        ("a sparse matrix of 2^40 columns", _wide, "either"),
        ("an empty sparse matrix", lambda rng: sp.csr_array((24, 3)), "either"),
        ("a sparse matrix in DOK", lambda rng: sp.dok_array(x), "right"),
        ("a torch tensor", lambda rng: torch.from_numpy(x), "either"),
        ("a torch tensor with NaN", lambda rng: torch.from_numpy(put(np.nan)(rng)), "either"),
        ("a torch tensor of bfloat16", lambda rng: torch.from_numpy(x).bfloat16(), "either"),
        ("a sparse torch tensor", lambda rng: torch.from_numpy(x).to_sparse(), "either"),
        ("a torch tensor that needs a gradient", lambda rng: torch.from_numpy(x).requires_grad_(), "either"),
        ("a frame with objects", frame(lambda pd, f: f.assign(a=[object()] * 24)), no),
        ("a frame with two columns of one name", frame(lambda pd, f: f.set_axis(["a", "a", "c"], axis=1)), "either"),
        ("a frame with numbers as names", frame(lambda pd, f: f.set_axis([0, 1, 2], axis=1)), "right"),
        ("a frame with two levels", frame(_levels), "either"),
        ("a series", frame(lambda pd, f: f["a"]), no),
        ("a frame of periods", frame(lambda pd, f: f.assign(p=pd.period_range("2020", periods=24))), "either"),
        ("a frame with lists", frame(lambda pd, f: f.assign(p=[[1, 2]] * 24)), no),
        ("a frame with bytes", frame(lambda pd, f: f.assign(p=[b"\xff", b"a"] * 12)), "either"),
    ]  # fmt: skip
    return found


def typed(kind: str, rng: Generator) -> Any:
    """Return the sound array in another type."""
    return np.abs(numbers()).astype(kind)


def _doubled(rng: Generator) -> Any:
    rows, columns = np.repeat(range(24), 3), np.tile(range(3), 24)
    return sp.coo_array((np.r_[numbers().ravel(), 1], (np.r_[rows, 0], np.r_[columns, 0])), shape=(24, 3))


def _wide(rng: Generator) -> Any:
    return sp.csr_array(([1.0, 2.0], [5, 7], [0, 1, 2]), shape=(2, 2**40))


def _levels(pd: Any, f: Any) -> Any:
    return f.set_axis(pd.MultiIndex.from_product([["a"], list("bcd")]), axis=1)


def _readonly(x: Any) -> Any:
    x = x.copy()
    x.setflags(write=False)
    return x


def _broken_sparse(rng: Generator) -> Any:
    matrix = sp.csr_array(numbers())
    matrix.indices[5] = 99
    return matrix


def parameter(name: str, value: Any) -> None:
    """Fit with an odd parameter: the result is finite, or a sentence says what is allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = small(**{name: value}).fit(numbers()).transform(numbers())
    if not np.isfinite(found).all():
        raise Wrong("the embedding is not finite")


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return samples with each of the methods, and then odd parameters."""
    made: list[tuple[str, Callable[[], None], Expect]] = []
    for turn in range(2):
        for number, (label, data, expect) in enumerate(samples()):
            method = METHODS[(number + 2 * turn + number // 4) % 4]
            made.append((f"{method} of {label}", partial(_using, method, data, seed, number), expect))
    grid = [(name, value) for name in PARAMETERS for value in ODD if not (name == "epochs" and value in (2**31, 10**9))]
    while len(made) < size:
        name, value = grid[(len(made) + seed * size) * 7919 % len(grid)]
        made.append((f"{name}={repr(value)[:40]}", partial(parameter, name, value), "either"))
    order = np.random.default_rng(5).permutation(size)  # so that the first ones are of every kind
    return tuple(
        Case(
            "estimator", number, label, seed, call, expect=expect,
            refusals=("ValueError", "TypeError") if label.endswith(OTHER_TYPES) else ("ValueError",),
        )
        for number, (label, call, expect) in enumerate(made[place] for place in order)
    )  # fmt: skip


def _using(method: str, data: Data, seed: int, number: int) -> None:
    use(method, data(generator("estimator data", number, seed)))
