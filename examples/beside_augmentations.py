"""Learned noise beside an augmentation that a loop already has: alone, together, and noise alone."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pinoise import PiNoise
from pinoise.evaluation import few_label_accuracies
from pinoise.methods import nt_xent


def shift(x: Tensor) -> Tensor:
    """Move every picture of 8 × 8 pixels by up to one pixel, each way of its own."""
    moves = torch.randint(-1, 2, (len(x), 2, 1))
    rows, columns = (torch.arange(8) + moves).remainder(8).unbind(1)  # (m, 8) each
    pictures = x.reshape(-1, 8, 8)
    return pictures[torch.arange(len(x))[:, None, None], rows[:, :, None], columns[:, None, :]].reshape(x.shape)


def train(data: Tensor, *, shifted: float, epochs: int = 20) -> nn.Module:
    """Return an encoder for which each view is shifted with a probability, and noisy otherwise (Algorithm 2)."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    head = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))
    noise = PiNoise.along(data)
    trained = [{"params": [*encoder.parameters(), *head.parameters()]}, *noise.param_groups(1e-3)]
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(data)).split(256):
            x = data[rows]
            views = [torch.where(torch.rand(len(x), 1) < shifted, shift(x), noisy) for noisy in noise.views(x, rows)]
            first, second = (head(encoder(view)) for view in views)
            loss = nt_xent(first, second).mean() + noise.regularizer(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return encoder


def main() -> None:
    """Print the accuracy with 10 labels per class, of the augmentation that one has and of learned noise."""
    X, y = load_digits(return_X_y=True)
    data = torch.from_numpy((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-6)).float()
    for name, shifted in {"shifts alone": 1.0, "shifts and noise": 0.5, "noise alone": 0.0}.items():
        z = train(data[:1300], shifted=shifted)(data).detach().numpy()
        scores = few_label_accuracies(z[:1300], y[:1300], z[1300:], y[1300:])
        print(f"{name}: {100 * np.mean(scores):.1f} % with 10 labels per class")


if __name__ == "__main__":
    main()
