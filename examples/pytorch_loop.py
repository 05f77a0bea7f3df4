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

    noise = PiNoise(64, hidden=256, feature_scale=data.std(dim=0))  # 1: the generator p_ψ(ε|x)
    optimizer = torch.optim.Adam([*encoder.parameters(), *noise.parameters()], lr=1e-3)  # 2: ψ learns with θ

    for step in range(1, steps + 1):
        x = data[torch.randint(len(data), (256,))]
        epsilon = noise.sample(x)  # 3: x + ε is the other view
        loss = nt_xent(encoder(x), encoder(x + epsilon)).mean() + 10 * noise.penalty(epsilon)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: loss {loss.item():.3f}, mean σ {noise.relative_scale(x).mean().item():.3f}")


if __name__ == "__main__":
    main()
