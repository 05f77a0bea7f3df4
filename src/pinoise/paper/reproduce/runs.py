"""Runs behind pictures and curves: trained in run folders of the cache, so that they are found and resumed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pinoise.data.dataset import fingerprint_parts
from pinoise.data.readers import open_for_training
from pinoise.experiments.cache import by_content, cell_key
from pinoise.experiments.fitting import CELL_FORMAT
from pinoise.experiments.plans import plan
from pinoise.model import Model, contrastive_model, load_run
from pinoise.paper.reproduce.data import UsedSet
from pinoise.paper.reproduce.outcome import Curve, OutcomeLine
from pinoise.paper.reproduce.paper import Item, Row, SetGroup
from pinoise.training.callbacks import Record, Reporter
from pinoise.training.config import Settings
from pinoise.training.config.settings import TrainingSettings
from pinoise.training.folder import ENCODER_FILE
from pinoise.training.metrics import probe_batch
from pinoise.training.run import run_health, run_training


class TrainedRun(NamedTuple):
    """The finished run of a row on a data set with one seed."""

    data: str
    row: Row
    group: SetGroup
    seed: int
    run: Model
    history: list[Record]
    flags: tuple[str, ...]


def train_rows(
    item: Item,
    scale: str,
    used: UsedSet,
    seeds: Sequence[int],
    *,
    folder: Path,
    reporter: Callable[[str], Reporter],
    note: Callable[[str], None],
) -> Iterator[TrainedRun]:
    """Yield the runs of an item on a data set; those that are finished in ``folder`` are read from there."""
    for group, row in item.rows_on(used.key):
        for seed in seeds:
            settings = _settings(item, group, row, scale, used, seed)
            data, _ = open_for_training(settings.data.source, settings.data)
            parts = {"settings": by_content(settings.model_dump()), "data": fingerprint_parts(data)}
            key = cell_key({**parts, "pinoise": version("pinoise"), "format": CELL_FORMAT})
            path = folder / key[:24]
            if not (path / ENCODER_FILE).exists():  # what a run writes last
                title = f"{used.title} · {row.title} · seed {seed}"
                run_training(path, settings, reporter=reporter(title), note=note)
            run = load_run(path)
            rows = run.rows(data.train.x, where=used.name, origin=data.train.origin)
            flags = run_health(contrastive_model(run, rows), rows, settings, run.history)
            yield TrainedRun(used.key, row, group, seed, run, run.history, tuple(flag.name for flag in flags))


def _settings(item: Item, group: SetGroup, row: Row, scale: str, used: UsedSet, seed: int) -> Settings:
    """Return the configuration of a run: that of a comparison, with its data and measurements of information."""
    shared, usual = item.settings_of(group, row, scale)
    (planned,) = plan(row.recipes, [seed], settings=shared, usual=usual).values()
    source: dict[str, Any] = {"source": used.name, "rows": item.scales[scale].rows}
    data = replace(planned.data, **source, size=item.pixels(used.key, scale))
    usual_draws = TrainingSettings.model_fields["information_draws"].default
    draws = shared.get("training", {}).get("information_draws", usual_draws)
    training = planned.training.model_copy(update={"information_draws": draws})
    return planned.model_copy(update={"data": data, "training": training})


def noise_line(trained: Sequence[TrainedRun]) -> OutcomeLine:
    """Return the size of the noise of a row's runs, and how far it follows the edges in the pictures."""
    first = trained[0]
    measured = [_measure(one.run) for one in trained]
    ours = {name: [values[name] for values in measured] for name in measured[0]}
    return _line(first, ours, trained)


def curve_line(item: Item, trained: Sequence[TrainedRun]) -> OutcomeLine:
    """Return where the curves of a row's runs end."""
    ends = {column: [one.history[-1].metrics[column] for one in trained] for column in item.columns}
    return _line(trained[0], ends, trained)


def _line(first: TrainedRun, ours: dict[str, list[float]], trained: Sequence[TrainedRun]) -> OutcomeLine:
    return OutcomeLine(
        data=first.data,
        group=first.group.title,
        title=first.row.title,
        method=first.row.recipes[0],
        paper={},
        ours=ours,
        above=first.row.above,
        flags=tuple(dict.fromkeys(flag for one in trained for flag in one.flags)),
    )


def curves_of(item: Item, trained: Sequence[TrainedRun]) -> Iterator[Curve]:
    """Yield the curves of a row, as means over its seeds, at the epochs at which they were measured."""
    for column in item.columns:
        table = np.array([[record.metrics[column] for record in one.history] for one in trained])  # (seeds, epochs)
        means = table.mean(axis=0)
        kept = [(record.epoch, float(mean)) for record, mean in zip(trained[0].history, means, strict=True)]
        kept = [(epoch, value) for epoch, value in kept if np.isfinite(value)]
        first = trained[0]
        yield Curve(first.data, first.row.title, column, [epoch for epoch, _ in kept], [value for _, value in kept])


@torch.no_grad()
def _measure(run: Model) -> dict[str, float]:
    """Return the mean σ of a run in standard deviations, and the correlations of σ and of learned μ with edges."""
    assert run.noise is not None  # items of noise learn it
    part = run.own_data().train
    x = probe_batch(run.rows(part.x, where=run.settings.data.source, origin=part.origin)).x
    sigma = run.noise.relative_scale(x)
    found = {"sigma": float(sigma.mean()), "edges": edge_correlation(sigma, x)}
    if run.noise.outputs == 2:
        found["mu_edges"] = edge_correlation(run.noise.mean(x).abs(), x)
    return found


def edge_correlation(maps: Tensor, images: Tensor) -> float:
    """Return Pearson's correlation between maps and the steepness of images, over pixels, as a mean over images.

    The steepness is the length of the gradient of the channels' mean. A constant map has no correlation: 0.

    Args:
        maps: (m, C, H, W).
        images: (m, C, H, W).

    >>> image = torch.zeros(1, 1, 6, 6)
    >>> image[..., 3:] = 1.0
    >>> steep = torch.gradient(image, dim=3)[0].abs()
    >>> edge_correlation(steep, image), edge_correlation(-steep, image), edge_correlation(torch.ones_like(image), image)
    (1.0, -1.0, 0.0)
    """
    down, right = torch.gradient(images.double().mean(dim=1), dim=(1, 2))
    steepness = (down.square() + right.square()).sqrt().flatten(1)  # (m, H * W)
    values = maps.double().mean(dim=1).flatten(1)
    values, steepness = (each - each.mean(dim=1, keepdim=True) for each in (values, steepness))
    norms = values.norm(dim=1) * steepness.norm(dim=1)
    flat = norms <= torch.finfo(torch.float32).eps * steepness.norm(dim=1)
    correlations = (values * steepness).sum(dim=1) / norms.masked_fill(flat, 1.0)
    return round(float(correlations.masked_fill(flat, 0.0).mean()), 6)
