"""Compare a graph, as onnxruntime computes it, with what pinoise itself computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from pinoise.data.layout import AS_IS, undo_image_layout
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.evaluation import embed

if TYPE_CHECKING:
    from pinoise.model import Model

What = Literal["embedding", "noise"]

_TRIAL_ROWS = 8

Arrays = dict[str, npt.NDArray[Any]]


def trial_samples(standardizer: Standardizer) -> npt.NDArray[Any]:
    """Return made-up samples in the units of the data, with some far from its middle and a row without entries.

    >>> trial_samples(Standardizer.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))).shape
    (8, 2)
    """
    random = np.random.default_rng(0)
    standard = random.standard_normal((_TRIAL_ROWS, *standardizer.shape))
    standard[-2] *= 5
    norms = random.uniform(0.5, 20, _TRIAL_ROWS)
    norms[-1] = 0
    samples = standardizer.undo(standard, norms)
    samples[0] += undo_image_layout(~standardizer.live[None], standardizer.layout)[0]  # a constant that changes
    return samples.astype(np.float32 if standardizer.layout != AS_IS else np.float64)


def computed(model: Any, inputs: Arrays) -> Arrays:
    """Return what onnxruntime computes, by the name of the output."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors alone
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


class ExpectedOutput(NamedTuple):
    """What an output should be, and the unit of every value, in which rows are compared."""

    values: npt.NDArray[Any]
    unit: npt.NDArray[Any] | float = 1.0


def expected(fitted: Model, x: npt.NDArray[Any], what: What) -> dict[str, ExpectedOutput]:
    """Return what pinoise computes of samples, by the name of the graph's output."""
    rows = make_rows(x, fitted.standardizer)
    if what == "embedding":
        return {"embedding": ExpectedOutput(embed(fitted.embedding, rows))}
    noise, standardizer = fitted.learned_noise, fitted.standardizer

    def of(parameter: Callable[[Tensor], Tensor], unit: npt.NDArray[Any]) -> ExpectedOutput:
        values = embed(lambda batch: parameter(batch).flatten(1), rows).reshape(-1, *standardizer.shape) * unit
        full = np.broadcast_to(np.where(unit > 0, unit, 1.0), values.shape)
        return ExpectedOutput(*(undo_image_layout(each, standardizer.layout) for each in (values, full)))

    unit = standardizer.units(x)
    found = {"sigma": of(noise.scale, unit), "relative_sigma": of(noise.relative_scale, np.ones(()))}
    return {**found, "mean": of(noise.mean, unit)} if noise.outputs == 2 else found


def largest_difference(found: npt.NDArray[Any], wanted: ExpectedOutput) -> float:
    """Return the largest difference of an output from what it should be, as a share of the largest value in its row.

    >>> largest_difference(np.array([[1.0, 100.0]]), ExpectedOutput(np.array([[2.0, 100.0]])))
    0.01
    """
    flat = (len(found), -1)
    apart = np.abs((found - wanted.values.astype(np.float64)) / wanted.unit).reshape(flat).max(axis=1)
    size = np.abs(wanted.values / wanted.unit).reshape(flat).max(axis=1)
    share = np.divide(apart, size, out=np.where(apart == 0, 0.0, np.inf), where=size > 0)
    return float(np.nan_to_num(share, nan=np.inf).max())


def difference(model: Any, fitted: Model, samples: npt.NDArray[Any], inputs: Arrays, what: What) -> float:
    """Return the largest difference between onnxruntime and pinoise, in a batch and a row alone.

    Args:
        model: the graph.
        fitted: what it is the graph of.
        samples: as pinoise takes them.
        inputs: the same, as the graph takes them.
        what: what it computes.
    """
    return max(
        largest_difference(computed(model, {name: values[:rows] for name, values in inputs.items()})[name_out], wanted)
        for rows in (len(samples), 1)
        for name_out, wanted in expected(fitted, samples[:rows], what).items()
    )
