"""An objective of one's own: the paper's direction with a floor under the noise."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from sklearn.datasets import load_digits
from torch import Tensor

from pinoise import HealthWarning, PiNDA
from pinoise.training.objectives import Look, Objective


class Floor(Objective):
    """Minimise mean ℓ(x, ε) over θ and ψ, and pay for every σ that is below a floor.

    Args:
        floor: the least σ that costs nothing, in standard deviations of each feature.
        weight: the price.
    """

    def __init__(self, *, floor: float = 0.5, weight: float = 10.0) -> None:
        super().__init__()
        self.floor = floor
        self.weight = weight

    def forward(self, look: Look, further: Sequence[Look] = ()) -> Tensor:
        """Return the scalar that encoder and noise minimise."""
        loss = look.losses.mean()
        if not look.noises:  # predefined views alone
            return loss
        return loss + self.weight * (self.floor - look.scale).clamp_min(0).square().mean()


def main() -> None:
    """Print what becomes of σ under the paper's objective and under two floors."""
    X = load_digits().data
    for name, objective in {"paper": "paper", "floor 0.5": Floor, "floor 1": {"name": Floor, "floor": 1.0}}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HealthWarning)  # they are printed below
            model = PiNDA(32, hidden=128, objective=objective, epochs=10, learning_rate=3e-3, random_state=0).fit(X)
        first, *_, last = model.history_["sigma_median"]
        print(f"{name}: median σ {first:.2f} after 1 epoch, {last:.2f} after 10; flags {model.flags_}")


if __name__ == "__main__":
    main()
