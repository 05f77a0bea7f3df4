"""Windows of sensor readings: 128 steps of six channels, flattened, with few of them labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from pinoise import PiNDA
from pinoise.data import load
from pinoise.evaluation import few_label_accuracies


def main() -> None:
    """Print accuracies on acceleration and gyroscope of telephones, for two kinds of noise."""
    data = load("hapt_raw")
    assert data.test is not None
    rows = np.random.default_rng(0).permutation(len(data.train.x))[:2000]
    X, y = np.asarray(data.train.x)[rows].reshape(len(rows), -1), np.asarray(data.train.y)[rows]
    X_test, y_test = np.asarray(data.test.x).reshape(len(data.test.x), -1), np.asarray(data.test.y)
    small: dict[str, Any] = {"n_components": 128, "hidden": 256, "epochs": 20, "random_state": 0}
    choices = {
        "raw windows": StandardScaler(),
        "PiNDA": PiNDA(**small),
        "PiNDA, neighbours": PiNDA(covariance="diagonal", **small),
    }
    for name, features in choices.items():
        Z, Z_test = features.fit_transform(X), features.transform(X_test)
        print(f"{name}: {100 * np.mean(few_label_accuracies(Z, y, Z_test, y_test)):.1f} % with 10 labels per class")


if __name__ == "__main__":
    main()
