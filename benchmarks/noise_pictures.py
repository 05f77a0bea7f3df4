"""Draw what each kind of noise does to a heartbeat, and to points of a curved cloud.

It writes docs/noise_*.png and docs/views_of_a_heartbeat.png. Noise is drawn as it is before training,
with σ as large as the differences between neighbours.

PINOISE_DATA=FOLDER python benchmarks/noise_pictures.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Generator, Tensor

from pinoise.data import load
from pinoise.noise import PiNoise

DATA = "ecg5000"
ROW = 3  # the heartbeat that is drawn
COPIES = 4  # noisy copies of it
POINTS = 120  # of the cloud
WITHIN = 0.07  # deviation of the cloud from its curve
SHOWN = (20, 58, 95)  # points of the cloud whose views are drawn
VIEWS = 60  # of each of them
REPLACED = 0.6  # the share of features that SCARF replaces
SEED = 0

Draw = Callable[[Tensor, int, Generator], Tensor]  # from a row's number and how many views, to views


def along(covariance: str, neighbours: int | None = None) -> Callable[[Tensor], Draw]:
    """Return what makes draws of the library's noise from training rows."""

    def make(data: Tensor) -> Draw:
        options = {} if neighbours is None else {"neighbours": neighbours}
        noise = PiNoise.along(data, covariance=covariance, **options).eval()  # type: ignore[arg-type]

        def draw(row: Tensor, count: int, random: Generator) -> Tensor:
            x = data[row].expand(count, -1)
            return x + noise.sample(x, rows=row.repeat(count), generator=random).detach()

        return draw

    return make


def random_noise(data: Tensor) -> Draw:
    """Independent noise with σ = 1, in standard deviations of each feature."""
    deviation = data.std(dim=0)
    return lambda row, count, random: data[row] + deviation * torch.randn(count, data.shape[1], generator=random)


def scarf(data: Tensor) -> Draw:
    """Features that are replaced by those of other rows, each from a row of its own."""

    def draw(row: Tensor, count: int, random: Generator) -> Tensor:
        shape = (count, data.shape[1])
        others = data.gather(0, torch.randint(len(data), shape, generator=random))
        return torch.where(torch.rand(shape, generator=random) < REPLACED, others, data[row])

    return draw


KINDS: dict[str, Callable[[Tensor], Draw]] = {
    "mixed": along("mixed"),
    "neighbours": along("diagonal"),
    "differences": along("differences", neighbours=0),
    "both": along("differences"),
    "low_rank": along("low-rank", neighbours=0),
    "around": along("diagonal", neighbours=0),
    "random": random_noise,
    "scarf": scarf,
}


def cloud() -> Tensor:
    """Points near a rising wave, shape (n, 2)."""
    random = Generator().manual_seed(SEED)
    t = torch.linspace(-3, 3, POINTS)
    return torch.stack([t, t + 0.45 * (2 * t).sin()], dim=1) + WITHIN * torch.randn(POINTS, 2, generator=random)


def draw_copies(axis: Axes, data: Tensor, draw: Draw, title: str) -> None:
    """Draw one row as a curve, and noisy copies of it."""
    copies = draw(torch.tensor(ROW), COPIES, Generator().manual_seed(SEED))
    for number, copy in enumerate(copies):
        axis.plot(copy, color=f"C{number}", linewidth=0.8, alpha=0.9)
    axis.plot(data[ROW], color="black", linewidth=2)
    axis.set_ylim(float(data[ROW].min()) - 2, float(data[ROW].max()) + 2)
    axis.set_title(title, fontsize=9)
    axis.tick_params(labelsize=7)


def draw_views(axis: Axes, data: Tensor, draw: Draw) -> None:
    """Draw a cloud of points, and the views of some of them."""
    random = Generator().manual_seed(SEED)
    axis.scatter(data[:, 0], data[:, 1], s=4, color="0.75")
    for number, row in enumerate(SHOWN):
        views = draw(torch.tensor(row), VIEWS, random)
        axis.scatter(views[:, 0], views[:, 1], s=7, color=f"C{number}", alpha=0.7, linewidths=0)
        axis.scatter(data[row, 0], data[row, 1], s=60, color=f"C{number}", edgecolor="black", marker="X", zorder=3)
    axis.set_xlim(-4, 4)
    axis.set_ylim(-4, 4)
    axis.set_aspect("equal")
    axis.set_title(f"{len(SHOWN)} points (crosses), {VIEWS} views of each", fontsize=9)
    axis.tick_params(labelsize=7)


def main() -> None:
    series = torch.as_tensor(load(DATA).train.x, dtype=torch.float32)
    points = cloud()
    folder = Path(__file__).parent.parent / "docs"
    for name, make in KINDS.items():
        figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), width_ratios=(2, 1), layout="constrained")
        draw_copies(left, series, make(series), f"a heartbeat (black) and {COPIES} noisy copies")
        draw_views(right, points, make(points))
        figure.savefig(folder / f"noise_{name}.png", dpi=90)
        plt.close(figure)
    draw_kinds(series, folder / "views_of_a_heartbeat.png")


def draw_kinds(series: Tensor, path: Path) -> None:
    """Draw the README's picture: copies of a heartbeat under noise that ignores the data, and under noise along it."""
    titles = {"random": "random noise", "scarf": "SCARF: values of other rows", "mixed": "π-noise: along the data"}
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.4), sharey=True, layout="constrained")
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        draw_copies(axis, series, KINDS[name](series), title)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
