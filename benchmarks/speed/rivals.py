"""Other libraries on the same rows, in a folder of their own: umap-learn, and lightly's SimCLR."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from speed.fits import one_fit
from speed.skipping import Skipped

UMAP = """
import time, json
from sklearn.datasets import load_digits
import umap
x = load_digits().data
umap.UMAP(n_jobs=1).fit(x[:200])  # compiles
began = time.perf_counter()
umap.UMAP(n_jobs=1).fit(x)
print(json.dumps(time.perf_counter() - began))
"""
LIGHTLY = """
import time, json, statistics, torch
from lightly.loss import NTXentLoss
from pinoise.networks import MLPEncoder, ProjectionHead
torch.set_num_threads(1)
model = torch.nn.Sequential(MLPEncoder((561,)), ProjectionHead(256))
optimizer, loss = torch.optim.Adam(model.parameters(), fused=True), NTXentLoss(0.5)
x, seconds = torch.randn(256, 561), []
for _ in range(20):
    began = time.process_time()
    total = loss(model(x), model(x + torch.randn_like(x)))
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    seconds.append(time.process_time() - began)
print(json.dumps(statistics.median(seconds)))
"""
PACKAGES = {
    "umap-learn": (UMAP, ["umap-learn", "pynndescent", "numba", "llvmlite"]),
    "lightly": (LIGHTLY, ["lightly", "lightly-utils", "torchvision"]),
}


def answer_of(name: str) -> float:
    """Install a library into a temporary folder, without what it depends on, run its script, return what it prints."""
    script, packages = PACKAGES[name]
    with tempfile.TemporaryDirectory() as folder:
        asked = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, *packages]
        done = subprocess.run(asked, capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"{name} cannot be installed: {_last_line(done.stderr)}")
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        asked = [sys.executable, "-c", script]
        done = subprocess.run(asked, capture_output=True, text=True, env=environment, cwd=Path(folder))
        if done.returncode:
            raise Skipped(f"{name} cannot be used here: {_last_line(done.stderr)}")
        return float(json.loads(done.stdout.splitlines()[-1]))


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


def against_umap() -> dict[str, Any]:
    """Return the time of a default ``PiNDA.fit`` as a multiple of UMAP's, on digits, one thread each."""
    theirs, ours = answer_of("umap-learn"), one_fit()
    return {"ratios": {"PiNDA.fit / UMAP.fit, digits": round(ours / theirs, 3)}, "seconds": [ours, theirs]}


def against_lightly() -> dict[str, Any]:
    """Return our random-noise step as a multiple of lightly's with the same network and batch."""
    from speed.steps import RANDOM, make_step
    from speed.timing import in_turns

    theirs = answer_of("lightly")
    ours = min(in_turns({RANDOM: make_step(RANDOM, 561)}, turns=9)[RANDOM])
    return {"ratios": {"step / lightly's SimCLR, d = 561": round(ours / theirs, 3)}, "seconds": [ours, theirs]}
