"""A method of one's own: alignment and uniformity (Wang & Isola, 2020) as a function of two projections."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.nn import functional as F

from pinoise import PiNDA


def align_uniform(first: Tensor, second: Tensor, *, uniformity: float = 1.0, t: float = 2.0) -> Tensor:
    """Return for every sample how far its views are apart, and how crowded the sphere is around them.

    Args:
        first: projections of one view, shape (m, dim).
        second: projections of the other view, shape (m, dim).
        uniformity: the weight of the second term.
        t: how near another sample must be to count as crowding.
    """
    first, second = F.normalize(first), F.normalize(second)
    alignment = (first - second).square().sum(dim=1)  # (m,)
    others = ~torch.eye(len(first), dtype=torch.bool, device=first.device)
    crowding = [
        (-t * torch.cdist(z, z).square())[others].reshape(len(z), -1).logsumexp(dim=1)  # (m, m − 1) to (m,)
        for z in (first, second)
    ]
    return alignment + uniformity * (crowding[0] + crowding[1]) / 2


def main() -> None:
    """Print the accuracy of a classifier on 100 labels, for SimCLR and for the method with two values of t."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    methods = {"simclr": "simclr", "t = 2": align_uniform, "t = 1": {"name": align_uniform, "t": 1.0}}
    for name, method in methods.items():
        model = PiNDA(32, hidden=128, method=method, embedding="learned", epochs=8, random_state=0).fit(X_train)
        Z, Z_test = model.transform(X_train), model.transform(X_test)
        classifier = LogisticRegression(max_iter=2000).fit(Z[:100], y_train[:100])
        print(f"{name}: {100 * classifier.score(Z_test, y_test):.1f} % with 100 labels")


if __name__ == "__main__":
    main()
