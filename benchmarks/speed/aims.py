"""What the library wants of its speed. Every aim stands here once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Aim(NamedTuple):
    """A bound on a ratio."""

    bound: float
    at_least: bool = False

    def met(self, ratio: float) -> bool:
        """Whether a ratio is within the bound.

        >>> Aim(0.9, at_least=True).met(0.95), Aim(1.1).met(1.2)
        (True, False)
        """
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:.2f}"


AIMS: dict[str, Aim] = {
    "step / its products, d = 561": Aim(0.85, at_least=True),
    "Algorithm 1, shared / random noise, d = 136": Aim(1.10),
    "Algorithm 1, shared / random noise, d = 561": Aim(1.10),
    "Algorithm 1, shared / random noise, d = 2000": Aim(1.25),
    "default objective, shared / random noise, d = 136": Aim(1.10),
    "default objective, shared / random noise, d = 561": Aim(1.10),
    "default objective, shared / random noise, d = 2000": Aim(1.25),
    "default fit / random-noise fit, HAPT-561": Aim(1.15),
    "speed of kNN / scikit-learn's": Aim(1.0, at_least=True),
    "memory of kNN, twice the rows": Aim(1.1),
    "embedding, learned / forward limit": Aim(0.9, at_least=True),
    "embedding, joined / forward limit": Aim(0.9, at_least=True),
    "step of sparse Reuters / of dense, speed": Aim(1.3, at_least=True),
    "mapped .npy / in memory, steps a second": Aim(0.9, at_least=True),
    "memory of training, ten times the rows": Aim(1.1),
}
"""By the name of the ratio."""

PAPER: dict[str, tuple[str, float]] = {
    "Algorithm 1, mlp, μ learned / random noise, d = 561": ("HAR", 1.35),
    "Algorithm 1, mlp, μ learned / random noise, d = 2000": ("Reuters; Epsilon 1.05", 1.12),
    "Algorithm 1, mlp, μ learned / random noise, d = 136": ("MSLR-WEB30K", 1.41),
    "ResNet18 generator / SimCLR, images": ("CIFAR-10", 1.28),
}
"""The paper's overheads of the same noise, on a GPU."""


def verdicts(ratios: Mapping[str, float]) -> dict[str, bool]:
    """Return for every aim whose ratio was measured whether it is met.

    >>> verdicts({"speed of kNN / scikit-learn's": 1.5, "another": 2.0})
    {"speed of kNN / scikit-learn's": True}
    """
    return {name: aim.met(ratios[name]) for name, aim in AIMS.items() if name in ratios}
