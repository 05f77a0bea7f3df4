"""The cost of π-noise on images, as in the paper's tables: operations, step time and peak memory for each generator.

Steps are timed in turns in one process, and medians are reported. Peak memory comes from a separate process for each
variant. The base is SimCLR with its augmentations. Noise is one more augmentation (pairing ``sampled``).

    PINOISE_DATA=FOLDER python benchmarks/image_cost.py
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pinoise.data import load
from pinoise.data.rows import make_rows
from pinoise.modes import flushed_denormals
from pinoise.networks import ResNet18
from pinoise.noise import make_generator
from pinoise.paper.counting import count_operations
from pinoise.paper.rehearsal import training_step
from pinoise.training.build import build_standardizer, channels_together, seeded_model
from pinoise.training.config import parse_settings
from pinoise.training.folder import describe_environment

ROUNDS = 5
ROWS = 512
SHAPE = (3, 32, 32)
GENERATORS = ("mlp", "resnet18", "resnet50", "unet", "shared", "global")
PAPER = {"mlp": 1.26e7, "resnet18": 5.65e8, "resnet50": 1.32e9}
"""The paper's operations for one image of CIFAR-10 and a learned mean."""


def variants(width: int, batch_size: int) -> dict[str, dict[str, Any]]:
    """Return the settings of every variant by its title."""
    shared = {
        "encoder": {"name": "resnet18", "width": width},
        "training": {"batch_size": batch_size, "device": "cpu"},
    }
    bare = {**shared, "views": {"augmentations": ["simclr"], "noise": "none"}}
    noisy = {
        name: {
            **shared,
            "views": {"augmentations": ["simclr"]},
            "objective": "supported",
            "noise": {
                "generator": {"name": name, **({"width": width} if name.startswith("resnet") else {})},
                "neighbours": 0,
            },
        }
        for name in GENERATORS
    }
    along = {**noisy["shared"], "noise": {"generator": {"name": "shared"}}}
    return {"SimCLR": bare, **noisy, "shared, along the data": along}


def make_step(settings: dict[str, Any]) -> Callable[[], None]:
    """Return a function that does one real training step, gather and optimiser included."""
    parsed = parse_settings(settings)
    x = load("cifar10_sub12k").draw(ROWS).train.x
    standardizer = build_standardizer(parsed, x)
    rows = make_rows(x, standardizer)
    model = seeded_model(parsed, standardizer, rows)
    return training_step(parsed, model, rows, batch_size=parsed.training.batch_size)


def step_ratios(width: int, batch_size: int) -> dict[str, dict[str, float]]:
    """Return the median time of a step, and its median ratio to SimCLR's in the same round."""
    steps = {name: make_step(settings) for name, settings in variants(width, batch_size).items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    with flushed_denormals():
        for number in range(ROUNDS + 1):
            for name, step in steps.items():
                began = time.perf_counter()
                step()
                if number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - began)
    base = seconds["SimCLR"]
    return {
        name: {
            "seconds": round(statistics.median(times), 4),
            "ratio": round(statistics.median(t / b for t, b in zip(times, base, strict=True)), 3),
        }
        for name, times in seconds.items()
    }


def peak_of_this_process() -> float:
    """Return the process's peak memory in GB, from Linux. ``resource`` may report the parent's peak instead."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1e6


def peak_memory(width: int, batch_size: int) -> dict[str, float]:
    """Return the peak memory in GB of a process that does three steps of each variant."""
    found = {}
    for name in variants(width, batch_size):
        asked = [sys.executable, __file__, "--only", name, "--width", str(width), "--batch", str(batch_size)]
        done = subprocess.run(asked, check=True, capture_output=True, text=True)
        found[name] = round(float(done.stdout.split()[-1]), 3)
    return found


def operations(width: int) -> dict[str, dict[str, float]]:
    """Return the operations for one image of SimCLR's encoder, and of each generator with a learned mean."""
    x = torch.zeros(1, *SHAPE)
    encoder = ResNet18(SHAPE, width=width)
    counted = {"SimCLR's encoder": count_operations(encoder, x)}
    for name in GENERATORS:
        generator = make_generator(name, SHAPE, 2, encoder=encoder)
        counted[name] = count_operations(generator, x)
    return {
        name: {"multiply_accumulates": count.multiply_accumulates, "total": count.total}
        | ({"paper": PAPER[name]} if name in PAPER and width == 64 else {})
        for name, count in counted.items()
    }


def memory_formats(width: int, batch_size: int) -> dict[str, float]:
    """Return the seconds of a forward and backward pass of the encoder, for both layouts of channels."""
    x = torch.randn(2 * batch_size, *SHAPE)
    networks = {
        "channels apart": ResNet18(SHAPE, width=width),
        "channels together": channels_together(ResNet18(SHAPE, width=width)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    for _ in range(ROUNDS):
        for name, network in networks.items():
            began = time.perf_counter()
            network(x).sum().backward()
            seconds[name].append(time.perf_counter() - began)
    return {name: round(statistics.median(times), 4) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--only", help=argparse.SUPPRESS)  # for the process that measures memory
    asked = parser.parse_args()
    if asked.only:
        step = make_step(variants(asked.width, asked.batch)[asked.only])
        for _ in range(3):
            step()
        print(peak_of_this_process())
        return
    result: dict[str, Any] = {
        "width": asked.width,
        "batch_size": asked.batch,
        "steps": step_ratios(asked.width, asked.batch),
        "peak_memory_gb": peak_memory(asked.width, asked.batch),
        "operations": operations(asked.width),
        "encoder_seconds": {str(width): memory_formats(width, asked.batch) for width in (8, 16, asked.width)},
        "environment": describe_environment(),
    }
    for name, times in result["steps"].items():
        print(f"{name}: {times['seconds']:.3f} s, {times['ratio']:.2f}×, {result['peak_memory_gb'][name]:.2f} GB")
    target = Path(__file__).parent / "results" / "image_cost.json"
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
