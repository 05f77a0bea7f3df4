"""Features of a frozen network as input: what an embedding of an embedding adds with few labels."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from pinoise import PiNDA
from pinoise.data import load
from pinoise.evaluation import few_label_accuracies, knn_accuracy


def main() -> None:
    """Print accuracies on 1,280 features that a small ImageNet network gives for pictures of clothes."""
    data = load("effnet_fashion_mnist")  # yours: the pooled output of any network, saved as an array
    assert data.test is not None
    X, y, X_test, y_test = (np.asarray(a) for a in (data.train.x, data.train.y, data.test.x, data.test.y))
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    pinda = PiNDA(n_components=128, hidden=256, epochs=30, random_state=0)  # sees no label
    for name, features in {"network's features": StandardScaler(), "with PiNDA": pinda}.items():
        Z = features.fit_transform(X)
        Z_test = features.transform(X_test)
        few = 100 * np.mean(few_label_accuracies(Z, y, Z_test, y_test))
        near = 100 * knn_accuracy(Z, y, Z_test, y_test)
        print(f"{name}: {few:.1f} % with 10 labels per class, {near:.1f} % by 5 neighbours")


if __name__ == "__main__":
    main()
