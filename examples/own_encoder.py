"""An encoder of one's own: a 1-D convolution that does not care where in a signal something happens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

from pinoise import PiNDA


class Convolution(nn.Module):
    """From signals (m, length) to features (m, width): a class that is made from the shape of a sample."""

    def __init__(self, shape: tuple[int, ...], *, width: int = 32, kernel: int = 9) -> None:
        super().__init__()
        self.out_features = width  # every encoder states how many features it gives
        self.layers = nn.Sequential(
            nn.Unflatten(1, (1, *shape)),  # (m, 1, length): one channel
            *(nn.Conv1d(1, width, kernel), nn.ReLU(), nn.Conv1d(width, width, kernel), nn.ReLU()),
            *(nn.AdaptiveAvgPool1d(1), nn.Flatten()),  # (m, width), wherever it happened
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of a batch."""
        return self.layers(x)  # type: ignore[no-any-return]


def make_signals(n: int, *, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return waves of three frequencies in noise, each beginning anywhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    angle = np.arange(64) * (0.3 + 0.15 * y[:, None]) + rng.uniform(0, 2 * np.pi, (n, 1))
    return np.sin(angle) + 0.7 * rng.normal(size=(n, 64)), y


def main() -> None:
    """Print how well neighbours agree in what the usual encoder and the convolution learn."""
    (X, y), (X_test, y_test) = make_signals(600, seed=0), make_signals(300, seed=1)
    for encoder in ("mlp", {"name": Convolution, "kernel": 5}):
        model = PiNDA(encoder=encoder, embedding="learned", hidden=128, epochs=10, random_state=0).fit(X)
        neighbours = KNeighborsClassifier(5).fit(model.transform(X[:60]), y[:60])
        score = 100 * neighbours.score(model.transform(X_test), y_test)
        print(f"{type(model.encoder_).__name__}: {score:.1f} % by 5 neighbours among 60 labels")


if __name__ == "__main__":
    main()
