"""The columns of a table as inputs of a graph: numbers are filled, categories become features, as in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinoise.data.table.batches import held_table
from pinoise.data.table.categories import MISSING, OTHER, CategoricalColumn
from pinoise.data.table.encoding import TableEncoding
from pinoise.data.table.numbers import NumericColumn

UNKNOWN = "a value that training did not have"


def takes_columns(encoding: TableEncoding) -> bool:
    """Whether a graph takes the columns of a table: of numbers and categories, with a category among them.

    A table of numbers alone is one matrix. So are the features of columns that a graph cannot encode.
    """
    if not all(type(column) in (NumericColumn, CategoricalColumn) for column in encoding.columns):
        return False
    return any(isinstance(column, CategoricalColumn) for column in encoding.columns)


def with_columns(model: Any, encoding: TableEncoding) -> Any:
    """Return the model with an input (rows, 1) for every column in place of its input ``x``: float64, or text.

    A missing number is NaN, and a missing text is empty.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    inputs, nodes, parts = [], [], []

    def constant(name: str, values: npt.NDArray[Any]) -> str:
        graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def node(operation: str, *taken: str, into: str, **options: Any) -> str:
        nodes.append(helper.make_node(operation, taken, [into], **options))
        return into

    for number, column in enumerate(encoding.columns):
        own, part = f"column_{number}", f"features_{number}"
        parts.append(part)
        if isinstance(column, NumericColumn):
            inputs.append(helper.make_tensor_value_info(column.name, TensorProto.DOUBLE, ["rows", 1]))
            fill = constant(f"{own}_fill", np.array(column.fill, dtype=np.float64))
            missing = node("IsNaN", column.name, into=f"{own}_missing")
            node("Where", missing, fill, column.name, into=part)
            if column.marked:
                parts.append(node("Cast", missing, into=f"{part}_marked", to=TensorProto.DOUBLE))
            continue
        assert isinstance(column, CategoricalColumn)  # ``takes_columns`` was asked
        inputs.append(helper.make_tensor_value_info(column.name, TensorProto.STRING, ["rows", 1]))
        codes = {category: code for code, category in enumerate(column.categories)}
        keys = {"": codes[MISSING] if column.missing else -1, **codes}
        others = codes[OTHER] if column.other else -1  # a category that there is not
        pairs = {"keys_strings": list(keys), "values_int64s": list(keys.values()), "default_int64": others}
        code = node("LabelEncoder", column.name, into=f"{own}_code", domain="ai.onnx.ml", **pairs)
        known = constant(f"{own}_codes", np.arange(len(codes), dtype=np.int64)[None])
        found = node("Equal", code, known, into=f"{own}_is")  # (rows, categories)
        node("Cast", found, into=part, to=TensorProto.DOUBLE)
    node("Concat", *parts, into="x", axis=1)
    rest = list(graph.node)
    del graph.input[:], graph.node[:]
    graph.input.extend(inputs)
    graph.node.extend([*nodes, *rest])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    return model


def trial_columns(encoding: TableEncoding, numbers: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return made-up cells for every column, (rows, 1), with missing and unknown ones.

    Args:
        encoding: of the table.
        numbers: the values of its features, of which those of numbers are taken, (rows, features).
    """
    names = encoding.feature_names
    cells: dict[str, npt.NDArray[Any]] = {}
    for column in encoding.columns:
        if isinstance(column, NumericColumn):
            values = numbers[:, [names.index(column.name)]].copy()
            if encoding.missing != "error":
                values[2] = np.nan
        else:
            assert isinstance(column, CategoricalColumn)  # ``takes_columns`` was asked
            some = [*column.categories, UNKNOWN, *([] if encoding.missing == "error" else [""])]
            values = np.array([some[-1 - row % len(some)] for row in range(len(numbers))], dtype=object)[:, None]
        cells[column.name] = values
    return cells


def encoded(encoding: TableEncoding, cells: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Return the features of cells as pinoise makes them."""
    columns = {}
    for name, values in cells.items():
        text = values.dtype == object
        given = [None if (value == "" if text else np.isnan(value)) else value for value in values[:, 0]]
        columns[name] = pa.array(given, pa.large_string() if text else pa.float64())
    table = held_table(pa.table(columns), where="trial")
    return np.asarray(encoding.apply(table, name="trial", labelled=False).train.x)
