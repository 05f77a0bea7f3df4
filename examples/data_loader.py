"""Learned noise in a loop over a shuffled DataLoader, with the numbers of the rows and without."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from pinoise import PiNoise
from pinoise.methods import nt_xent


def train(data: Tensor, *, numbered: bool, epochs: int = 5) -> list[float]:
    """Return the mean loss of every epoch.

    Noise along the data moves a sample to one of its neighbours. By a row's number it looks them up; without numbers
    it searches for them in every batch, which takes longer.
    """
    torch.manual_seed(0)
    numbers = torch.arange(len(data))
    samples = TensorDataset(numbers, data) if numbered else TensorDataset(data)
    loader: DataLoader[tuple[Tensor, ...]] = DataLoader(samples, batch_size=256, shuffle=True, drop_last=True)
    encoder = nn.Sequential(nn.Linear(data.shape[1], 256), nn.ReLU(), nn.Linear(256, 64))
    noise = PiNoise.along(data)
    optimizer = torch.optim.Adam([{"params": encoder.parameters()}, *noise.param_groups(1e-3)], lr=1e-3)
    means = []
    for _ in range(epochs):
        losses = []
        for *rows, x in loader:
            first, second = noise.views(x, *rows)
            loss = nt_xent(encoder(first), encoder(second)).mean() + noise.regularizer(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        means.append(torch.stack(losses).mean().item())
    return means


def main() -> None:
    """Print how the loss goes either way."""
    data = torch.from_numpy(load_digits().data).float()
    for name, numbered in {"with row numbers": True, "without": False}.items():
        print(f"{name}: loss by epoch {', '.join(f'{loss:.2f}' for loss in train(data, numbered=numbered))}")


if __name__ == "__main__":
    main()
