"""A mixed table goes into a graph as its columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pandas as pd
import pytest

from pinoise import PiNDA

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.estimator.HealthWarning")


def people(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.normal(40, 10, rows),
            "town": random.choice(["Oslo", "Rome", "Bern"], rows).astype(object),
            "income": random.lognormal(8, 2, rows),
            "member": random.choice(["no", "yes"], rows).astype(object),
        }
    )
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "town"] = None
    return frame


@pytest.mark.parametrize("scaling", ["features", "compressed"])
def test_the_columns_of_a_mixed_table_are_embedded_as_transform_does(scaling: str, tmp_path: Path) -> None:
    frame = people()
    model = PiNDA(4, hidden=8, epochs=1, batch_size=64, scaling=scaling, random_state=0).fit(frame)
    model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [given.name for given in session.get_inputs()] == list(frame.columns)
    new = frame.iloc[:8].copy()
    new.loc[1, "town"] = "Paris"  # which training did not have
    wanted = model.transform(new)
    for rows in (8, 1):
        cells: dict[str, npt.NDArray[np.object_] | npt.NDArray[np.float64]] = {
            name: new[[name]].fillna("").to_numpy(dtype=object)
            if name in ("town", "member")
            else new[[name]].to_numpy(dtype=np.float64)
            for name in frame
        }
        (found,) = session.run(None, {name: values[:rows] for name, values in cells.items()})
        size = np.abs(wanted[:rows]).max(axis=1, keepdims=True)
        assert (np.abs(found - wanted[:rows]) <= 1e-5 * size).all()
