"""Which score without labels tells which noise is best, on a validation part of the training rows. No test row is used.

PINOISE_DATA=FOLDER python benchmarks/noise_choice.py
PINOISE_DATA=FOLDER python benchmarks/noise_choice.py --held-out  # the sets that no choice is made on; choose nothing
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.data import Dataset
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.experiments.plans import with_steps
from pinoise.information import estimate_mutual_information, measure_embedding
from pinoise.modes import Randomness, flushed_denormals
from pinoise.networks import Embedding
from pinoise.noise import PiNoise
from pinoise.training.build import build_embedding
from pinoise.training.config import Settings, merge, parse_settings
from pinoise.training.folder import describe_environment
from pinoise.training.objectives import ContrastiveModel
from pinoise.views import Batch
from validation import SUITE, fitted, scores, validation


class NoiseKind(NamedTuple):
    """A kind of noise that may be chosen."""

    covariance: str
    neighbours: int | None = None  # None leaves the number, and the amplitude, as it is
    amplitude: float | None = None


NOISE_KINDS: Mapping[str, NoiseKind] = {
    "mixed": NoiseKind("mixed"),
    "neighbours": NoiseKind("diagonal"),
    "differences": NoiseKind("differences", neighbours=0),
    "both": NoiseKind("differences"),
}

STUDIED = {
    **NOISE_KINDS,
    "small differences": NoiseKind("differences", neighbours=0, amplitude=1.0),
    "large differences": NoiseKind("differences", neighbours=0, amplitude=3.0),
    "low rank": NoiseKind("low-rank", neighbours=0),
}
TRIAL = 4  # a trial has this part of the steps
SCORED_ROWS = 512
SEED = 0
INFORMATION_DRAWS = 8


def with_noise(settings: Settings, candidate: NoiseKind) -> Settings:
    """Return settings with a candidate as their noise.

    >>> found = with_noise(Settings(), NOISE_KINDS["differences"])
    >>> found.noise.covariance, found.noise.neighbours
    ('differences', 0)
    """
    noise = {key: value for key, value in candidate._asdict().items() if value is not None}
    views = {"noise": Settings().views.noise}
    return settings.model_copy(
        update={"noise": settings.noise.model_copy(update=noise), "views": settings.views.model_copy(update=views)}
    )


def separation(z: Tensor, *, clusters: int = 20) -> float:
    """The mean silhouette of k-means clusters on the unit sphere: higher if samples form groups apart from each other.

    Args:
        z: embeddings (m, o) of m different samples.
        clusters: the most clusters; with few samples, half as many as samples.

    >>> groups = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]])
    >>> round(separation(groups), 2)
    0.95
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    unit = F.normalize(z.detach().double(), dim=1).numpy()
    number = min(clusters, len(unit) // 2, len(np.unique(unit, axis=0)) - 1)
    if number < 2:
        return -1.0  # fewer groups than two cannot lie apart
    return float(silhouette_score(unit, KMeans(number, n_init=3, random_state=0).fit_predict(unit)))


def lidar(views: Tensor) -> float:
    """LiDAR (Thilak et al., 2024): the effective rank of views' scatter between samples in units of that within.

    Args:
        views: embeddings of several views of each sample, shape (views, m, o).
    """
    centre = views.mean(dim=0)
    within = (views - centre).flatten(0, 1)
    within = within.T @ within / len(within) + 1e-4 * torch.eye(views.shape[2])
    between = torch.cov(centre.T)
    values, vectors = torch.linalg.eigh(within)
    whitening = vectors @ (values.rsqrt()[:, None] * vectors.T)
    shares = torch.linalg.eigvalsh(whitening @ between @ whitening).clamp_min(0)
    shares = shares / shares.sum()
    return float(torch.special.entr(shares).sum().exp())


def overlap(first: np.ndarray, second: np.ndarray, k: int = 10) -> float:
    """Return the share of a row's k neighbours in one embedding that are its neighbours in another."""
    near = [NearestNeighbors(n_neighbors=k).fit(z).kneighbors(return_distance=False) for z in (first, second)]
    return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(*near, strict=True)]))


def uniformity(z: Tensor) -> Tensor:
    """−log E exp(−2 ‖z − z'‖²) over pairs of samples, on the unit sphere: higher if samples are spread more evenly.

    Wang and Isola (2020) minimise the negative of it.

    Args:
        z: embeddings (m, o) of m different samples.

    >>> uniformity(torch.tensor([[2.0, 0.0], [-1.0, 0.0]]))  # one pair, at distance 2
    tensor(8.)
    >>> round(float(uniformity(torch.ones(3, 2))), 6)
    0.0
    """
    squares = torch.pdist(F.normalize(z.detach().double(), dim=1)).square()
    found: Tensor = math.log(len(squares)) - torch.logsumexp(-2 * squares, dim=0)
    return found.float()


def label_free(model: ContrastiveModel, again: nn.Module, batch: Batch, reference: PiNoise) -> dict[str, float]:
    """Return every score of an encoder on training rows.

    Args:
        model: what was trained with a candidate's noise.
        again: the encoder of a trial with the same noise and another seed.
        batch: training rows and their numbers.
        reference: makes the same views for all candidates.
    """
    encoder, x = model.method.encoder, batch.x
    random = torch.Generator().manual_seed(SEED)
    half = torch.rand(x[0].shape, generator=random) < 0.5
    with torch.no_grad():
        z = F.normalize(encoder(x), dim=1)
        drawn = [F.normalize(encoder(x + reference.sample(x, generator=random)), dim=1) for _ in range(4)]
        # 0 is the mean of a standardised feature.
        one, two = (F.normalize(encoder(torch.where(side, x, 0)), dim=1).numpy() for side in (half, ~half))
        other = F.normalize(again(x), dim=1)
        losses = torch.stack([model.look(batch).losses for _ in range(INFORMATION_DRAWS)], dim=1)
    views = torch.stack(drawn)
    own = torch.cdist(views[0], z).argmin(dim=1) == torch.arange(len(z))
    return {
        "uniformity": float(uniformity(z)),
        "alignment": -float((views[0] - views[1]).square().sum(dim=1).mean()),
        "retrieval": float(own.float().mean()),
        "effective rank": measure_embedding(z).effective_rank,
        "LiDAR": lidar(views),
        "silhouette": separation(z),
        "overlap with raw": overlap(x.flatten(1).numpy(), z.numpy()),
        "agreement of halves": overlap(one, two),
        "agreement of fits": overlap(z.numpy(), other.numpy()),
        "exact information": estimate_mutual_information(losses).value,
    }


def study(data: Dataset, candidates: Mapping[str, NoiseKind]) -> Iterator[dict[str, Any]]:
    """Yield a row for each candidate: accuracy after a full fit, and scores after it and after a trial."""
    assert data.test is not None  # validation() makes a test part
    shared = merge(SUITE.settings, {"training": {"seed": SEED, "information_draws": 0}})
    whole = with_steps(parse_settings(shared), SUITE.steps, rows=len(data.train))
    short = with_steps(parse_settings(shared), SUITE.steps // TRIAL, rows=len(data.train))
    standardizer = Standardizer.fit(data.train.x)
    rows, held_out = (make_rows(part.x, standardizer) for part in (data.train, data.test))
    numbers = torch.arange(min(SCORED_ROWS, len(rows))) * len(rows) // min(SCORED_ROWS, len(rows))
    batch = Batch(rows[numbers], numbers, random=Randomness(SEED))
    other = short.model_copy(update={"training": short.training.model_copy(update={"seed": SEED + 1})})
    reference = fitted(whole, standardizer, rows).noise
    assert reference is not None
    for name, candidate in candidates.items():
        model = fitted(with_noise(whole, candidate), standardizer, rows)
        trial = fitted(with_noise(short, candidate), standardizer, rows)
        again = fitted(with_noise(other, candidate), standardizer, rows).method.encoder
        embedding: Embedding = build_embedding(model.method.encoder, "joined", standardizer, rows)
        yield {
            "data": data.name,
            "noise": name,
            **scores(embedding, data, rows, held_out, seed=SEED),
            "full": label_free(model, again, batch, reference),
            "trial": label_free(trial, again, batch, reference),
        }


def judge(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for every score, how it goes with accuracy over candidates, and what choosing by it would give."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    found = []
    for when in ("full", "trial"):
        for score in rows[0][when]:
            taus, few, knn = [], [], []
            for name in names:
                here = [row for row in rows if row["data"] == name]
                values = [row[when][score] for row in here]
                taus.append(float(stats.kendalltau(values, [row["few"] for row in here]).statistic))
                among = [row for row in here if row["noise"] in NOISE_KINDS]
                chosen = max(among, key=lambda row: row[when][score])
                few.append((chosen["few"], max(row["few"] for row in among)))
                knn.append(chosen["knn"])
            found.append(
                {
                    "score": score,
                    "after": when,
                    "tau": [round(tau, 2) for tau in taus],
                    "mean tau": round(float(np.nanmean(taus)), 2),
                    "few": round(float(np.mean([own for own, _ in few])), 2),
                    "knn": round(float(np.mean(knn)), 2),
                    "within a point": sum(own >= best - 1 for own, best in few),
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="confirm the choice on the other half of the sets")
    confirms = parser.parse_args().held_out
    sets, candidates = (SUITE.held_out, NOISE_KINDS) if confirms else (SUITE.chosen_on, STUDIED)
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    with flushed_denormals():
        for name in sets:
            for row in study(validation(name), candidates):
                rows.append(row)
                print({key: value for key, value in row.items() if key not in ("full", "trial")}, flush=True)
    fixed = {
        name: {
            key: round(float(np.mean([row[key] for row in rows if row["noise"] == name])), 2) for key in ("few", "knn")
        }
        for name in candidates
    }
    result: dict[str, Any] = {
        "sets": list(sets),
        "seed": SEED,
        "fixed": fixed,
        "scores": judge(rows),
        "rows": rows,
        "environment": describe_environment(),
    }
    target = Path(__file__).parent / "results" / f"noise_choice{'_held_out' if confirms else ''}.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for line in result["scores"]:
        print({key: value for key, value in line.items() if key != "tau"})


if __name__ == "__main__":
    main()
