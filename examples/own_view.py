"""A view of one's own: a shift in time, beside the learned noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from pinoise import PiNDA


def shift(x: Tensor, *, most: int = 8) -> Tensor:
    """Turn every signal (m, length) by a number of steps of its own; what leaves at one end enters at the other."""
    steps = torch.randint(-most, most + 1, (len(x), 1), device=x.device)
    return x.gather(1, (torch.arange(x.shape[1], device=x.device) + steps) % x.shape[1])


def main() -> None:
    """Print how well neighbours agree for pulses of two shapes, with noise alone and with shifts beside it."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=900)
    time = np.arange(64) - rng.integers(16, 48, size=(900, 1))  # a pulse may come at any time
    pulses = np.where(y[:, None] == 0, np.exp(-((time / 4) ** 2)), np.exp(-np.abs(time) / 4) * np.cos(time))
    X = pulses + 0.5 * rng.normal(size=pulses.shape)
    choices: dict[str, list[Any]] = {
        "noise alone": [],
        "shifts of up to 8": [shift],
        "shifts of up to 4": [{"name": shift, "most": 4}],
    }
    for name, augmentations in choices.items():
        model = PiNDA(
            n_components=32,
            hidden=256,
            embedding="learned",
            augmentations=augmentations,
            neighbours=0,  # the shift moves samples, noise need not
            epochs=15,
            random_state=0,
        ).fit(X[:600])
        neighbours = KNeighborsClassifier(5).fit(model.transform(X[:60]), y[:60])
        score = neighbours.score(model.transform(X[600:]), y[600:])
        print(f"{name}: {100 * score:.1f} % by 5 neighbours among 60 labels")


if __name__ == "__main__":
    main()
