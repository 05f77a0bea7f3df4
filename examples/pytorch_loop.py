"""Three lines of learned noise in a contrastive loop of one's own."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

from pinoise import PiNoise
from pinoise.methods import nt_xent


def main(steps: int = 100) -> None:
    """Train an encoder against its own noise, and print how the loss and the noise go."""
    torch.manual_seed(0)
    data = torch.from_numpy(load_digits().data).float()
    encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

    noise = PiNoise.along(data)  # p_ψ(ε|x), which moves samples along the data
    optimizer = torch.optim.Adam([{"params": encoder.parameters()}, *noise.param_groups(1e-3)], lr=1e-3)

    for step in range(steps):
        rows = torch.randint(len(data), (256,))
        x = data[rows]
        first, second = noise.views(x, rows)
        loss = nt_xent(encoder(first), encoder(second)).mean() + noise.regularizer(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 25 == 0:
            sigma = noise.relative_scale(x)[0]
            print(f"step {step + 1}: loss {loss.item():.3f}, σ from {sigma[sigma > 0].min():.2f} to {sigma.max():.2f}")


if __name__ == "__main__":
    main()
