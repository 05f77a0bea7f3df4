"""Few labels and many rows: learn an embedding without labels, then a classifier on a handful of them."""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pinoise import PiNDA


def main() -> None:
    """Print the accuracy of a classifier on 100 labels, with and without the embedding."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)

    # All rows teach the embedding; no label is used.
    pinda = PiNDA(n_components=64, hidden=256, epochs=20, random_state=0).fit(X_train)

    few = slice(0, 100)
    for name, steps in {"raw features": [], "embedding": [pinda]}.items():
        inputs, test = X_train[few], X_test
        for step in steps:
            inputs, test = step.transform(inputs), step.transform(test)
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(inputs, y_train[few])
        print(f"{name}: {100 * classifier.score(test, y_test):.1f} % with 100 labels")


if __name__ == "__main__":
    main()
