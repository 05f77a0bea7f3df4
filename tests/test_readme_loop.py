"""The loop of the README trains what ``PiNDA`` trains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from pinoise import PiNDA, PiNoise
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.methods import nt_xent
from pinoise.modes import TRAINING, seed_of
from pinoise.training.build import seeded_model
from pinoise.training.config import parse_settings
from pinoise.training.loop import shuffled_rows

SEED, EPOCHS, BATCH, RATE = 5, 12, 100, 1e-3
README = Path(__file__).parent.parent / "README.md"


def readme_loop() -> str:
    """The lines of the README's loop, from the noise to the step of the optimiser."""
    text = README.read_text(encoding="utf-8")
    found = re.search(r"^noise = PiNoise\.along.*?^    optimizer\.step\(\)$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def test_learned_noise_takes_three_lines_of_the_loop() -> None:
    lines = [line for line in readme_loop().splitlines() if "noise" in line]
    numbered = [line for line in lines if re.search(r"# [123]: ", line)]
    assert len(numbered) == 3
    assert [line for line in lines if line not in numbered] == [
        'optimizer = torch.optim.Adam([{"params": net.parameters()}, *noise.param_groups(1e-3)], lr=1e-3)'
    ]  # a loop without noise has this line, too


@torch.backends.mkldnn.flags(enabled=False)  # two libraries round differently, and neighbours may tip over it
def test_the_loop_of_the_readme_trains_what_the_estimator_trains() -> None:
    X = load_digits().data[:500]
    settings: dict[str, Any] = {"hidden": 32, "epochs": EPOCHS, "batch_size": BATCH, "learning_rate": RATE}
    estimator = PiNDA(n_components=16, random_state=SEED, device="cpu", **settings).fit(X)
    seed = int(np.random.RandomState(SEED).randint(2**31))

    # The same data, initial weights and order of rows; the rest is the README's.
    standardizer = Standardizer.fit(X)
    data = make_rows(X, standardizer)[torch.arange(len(X))]
    small = {"encoder": {"hidden": 32, "out_features": 16}, "training": {"seed": seed}}
    model = seeded_model(parse_settings(small), standardizer, make_rows(X, standardizer))
    net = nn.Sequential(model.method.encoder, model.method.head)
    torch.manual_seed(seed_of(seed, TRAINING))
    order = torch.cat([shuffled_rows(len(X), seed=seed, epoch=epoch) for epoch in range(EPOCHS)])
    loop = readme_loop().replace("torch.randperm(len(data)).split(250)", "batches")
    scope: dict[str, Any] = {
        "torch": torch,
        "PiNoise": PiNoise,
        "nt_xent": nt_xent,
        "data": data,
        "net": net,
        "batches": order.split(BATCH),
    }
    exec(loop, scope)

    def difference(mine: Tensor, theirs: Tensor) -> float:
        return float((mine - theirs).norm() / theirs.norm())

    trained, theirs = model.method.encoder.state_dict(), estimator.encoder_.state_dict()
    start = seeded_model(parse_settings(small), standardizer, make_rows(X, standardizer)).method.encoder.state_dict()
    for name, weight in trained.items():
        moved = difference(start[name], theirs[name])
        assert moved > 0.01, name
        # Two passes instead of one round otherwise, and Adam carries that along: a thousandth of the way.
        assert difference(weight, theirs[name]) < 1e-3 * moved + 1e-5, name
    noise = scope["noise"]
    torch.testing.assert_close(noise.generator.raw, estimator.noise_.generator.raw, rtol=1e-3, atol=1e-5)
    assert float(noise.generator.raw.detach().abs().max()) > 0.01
    x = data[:20]
    torch.testing.assert_close(noise.relative_scale(x), estimator.noise_.relative_scale(x), rtol=1e-3, atol=1e-5)
