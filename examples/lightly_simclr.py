"""Learned noise in lightly's SimCLR: lightly's head and loss, and views that are made on the batch."""

from __future__ import annotations

import torch
from lightly.loss import NTXentLoss
from lightly.models.modules import SimCLRProjectionHead
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pinoise import PiNoise


def main() -> None:
    """Train for five epochs, and print how the loss goes."""
    torch.manual_seed(0)
    data = torch.from_numpy(load_digits().data).float()
    loader = DataLoader(TensorDataset(torch.arange(len(data)), data), batch_size=256, shuffle=True, drop_last=True)
    backbone = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    head = SimCLRProjectionHead(64, 64, 32)
    criterion = NTXentLoss(temperature=0.5)
    noise = PiNoise.along(data)  # in the place of lightly's SimCLRTransform, which is for photographs
    trained = [{"params": [*backbone.parameters(), *head.parameters()]}, *noise.param_groups(1e-3)]
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    for epoch in range(5):
        losses = []
        for rows, x in loader:
            first, second = noise.views(x, rows)
            loss = criterion(head(backbone(first)), head(backbone(second))) + noise.regularizer(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.2f}")


if __name__ == "__main__":
    main()
