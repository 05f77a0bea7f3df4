"""Write a graph as an ONNX file, which is kept only if onnxruntime computes what pinoise does."""

from __future__ import annotations

import copy
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy.typing as npt
import torch

from pinoise.data.table.encoding import TableEncoding
from pinoise.errors import UserError, needing, unknown_choice
from pinoise.export.check import What, difference, trial_samples
from pinoise.export.columns import encoded, takes_columns, trial_columns, with_columns
from pinoise.export.graph import EmbeddingGraph, NoiseGraph
from pinoise.files import written
from pinoise.modes import own_modes

if TYPE_CHECKING:
    from pinoise.model import Model

CLOSENESS = 1e-5
"""How far an output of the graph may be from pinoise's own: this share of the largest value in its row."""


@own_modes()
def write_onnx(path: Path, fitted: Model, *, what: What) -> dict[str, Any]:
    """Write what was fitted as one ONNX file, complete or not at all, and return its inputs, outputs and closeness.

    The graph takes any number of rows. It is compared with pinoise on made-up rows before the file is kept: no value
    may differ by more than 1e-5 of the largest value in its row.
    """
    if what not in get_args(What):
        raise unknown_choice("what", what, get_args(What))
    require_onnx()
    if what == "embedding":
        module: Any = EmbeddingGraph(fitted.standardizer, copy.deepcopy(fitted.embedding))
    else:
        module = NoiseGraph(fitted.standardizer, copy.deepcopy(fitted.learned_noise))
    samples = trial_samples(fitted.standardizer)
    model, inputs = to_graph(module.cpu().eval(), samples), {"x": samples}
    encoding = fitted.preparation.encoding
    if isinstance(encoding, TableEncoding) and takes_columns(encoding):
        model, inputs = with_columns(model, encoding), trial_columns(encoding, samples)
        samples = encoded(encoding, inputs)
    apart = difference(model, fitted, samples, inputs, what)
    if not apart <= CLOSENESS:
        raise UserError(
            f"{path} was not written: onnxruntime's {what} differs from pinoise's by {apart:.1e} of the largest value "
            f"in a row, more than {CLOSENESS:g}."
        )
    _describe(model, fitted, what)
    with written(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return {
        "inputs": {each.name: _shape(each) for each in model.graph.input},
        "outputs": {each.name: _shape(each) for each in model.graph.output},
        "difference": apart,
    }


def require_onnx() -> None:
    """Refuse to go on without the libraries that export needs."""
    with needing("export", what="export"):
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401


def to_graph(module: Any, samples: npt.NDArray[Any]) -> Any:
    """Return a module as an ONNX model with one input ``x`` of any number of rows."""
    part = module.embedding.encoder if hasattr(module, "embedding") else module.noise.generator
    name = type(part).__name__
    try:
        with _quiet():
            program = torch.onnx.export(
                module,
                (torch.from_numpy(samples),),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("rows")},),
                input_names=["x"],
                output_names=list(module.outputs),
                verbose=False,
            )
            assert program is not None
            model: Any = program.model_proto
    except Exception as error:  # whatever the exporter meets in a part of the user's own
        why = " ".join(str(error.__cause__ or error).split()).partition(". ")[0][:160]
        raise UserError(
            f"{name} cannot be made an ONNX graph: its forward must neither branch on values nor use what ONNX lacks "
            f"(torch says: {why})."
        ) from error
    if _shape(model.graph.input[0])[0] != "rows":
        raise UserError(
            f"{name} cannot be made an ONNX graph for any number of rows: something in it turns the number into a "
            "constant; write x.shape[0] where it has len(x) or a number of its own."
        )
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks to its own developers from the user."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch's loggers have levels of their own
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _describe(model: Any, fitted: Model, what: What) -> None:
    """Write into the file what it holds and which version of pinoise made it."""
    facts: dict[str, Any] = {"pinoise": version("pinoise"), "what": what}
    if fitted.feature_names is not None:
        facts["features"] = list(fitted.feature_names)
    if what == "embedding":
        facts["columns"] = list(fitted.column_names)
    model.producer_name, model.producer_version = "pinoise", facts["pinoise"]
    for name, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        model.metadata_props.add(key=name, value=text)


def _shape(value: Any) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
