"""Text by TF-IDF in a Pipeline: sparse features in, few labels, and nothing to download.

The texts are the beginnings of docstrings; the class is the library that a docstring is from.
"""

from __future__ import annotations

import inspect

import numpy as np
import scipy.stats
import sklearn.metrics
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline

from pinoise import PiNDA


def docstrings() -> tuple[list[str], np.ndarray]:
    """Return the first two paragraphs of docstrings, and the library that each is from."""
    texts, classes = [], []
    for number, module in enumerate((np, scipy.stats, sklearn.metrics, torch)):
        said = {inspect.getdoc(getattr(module, name)) for name in sorted(dir(module)) if not name.startswith("_")}
        for text in sorted(filter(None, said)):
            texts.append(" ".join(text.split("\n\n")[:2]))
            classes.append(number)
    return texts, np.array(classes)


def main() -> None:
    """Print the accuracy with few labels, with and without the embedding."""
    texts, y = docstrings()
    train, test, y_train, y_test = train_test_split(texts, y, test_size=0.3, stratify=y, random_state=0)
    words = TfidfVectorizer(max_features=2000, stop_words="english", sublinear_tf=True)
    pinda = PiNDA(n_components=64, hidden=256, epochs=20, random_state=0)
    for name, pipeline in {"TF-IDF": make_pipeline(words), "with PiNDA": make_pipeline(words, pinda)}.items():
        Z, Z_test = pipeline.fit_transform(train), pipeline.transform(test)  # on all texts, without labels
        draws = StratifiedShuffleSplit(10, train_size=40, random_state=0).split(Z, y_train)
        model = LogisticRegression(C=100, max_iter=1000)
        scores = [model.fit(Z[rows], y_train[rows]).score(Z_test, y_test) for rows, _ in draws]
        print(f"{name}: {100 * np.mean(scores):.1f} ± {100 * np.std(scores):.1f} % over 10 draws of 40 labels")


if __name__ == "__main__":
    main()
