"""π-noise from a ResNet18 on images of CIFAR-10's size, against SimCLR without it."""

from __future__ import annotations

from typing import Any

from pinoise.modes import flushed_denormals
from pinoise.paper.rehearsal import Rehearsal, training_step
from pinoise.training.config import parse_settings
from speed.timing import Task, in_turns, milliseconds, ratio

SHAPE = (32, 32, 3)  # as stored: bytes, channels last
BATCH, ROWS, TURNS = 16, 64, 3
PLAIN = {"views": {"augmentations": ["simclr"], "noise": "none"}}
NOISY = {"views": {"augmentations": ["simclr"]}, "objective": "paper", "noise": {"mean": "learned"}}


def make_step(changes: dict[str, Any]) -> Task:
    """Return a function that does one training step of a ResNet18."""
    shared = {"encoder": "resnet18", "training": {"batch_size": BATCH, "device": "cpu"}}
    settings = parse_settings({**shared, **changes})
    rehearsal = Rehearsal(settings, SHAPE, ROWS)
    return training_step(settings, rehearsal.model, rehearsal.rows, batch_size=BATCH)


def measure() -> dict[str, Any]:
    """Return what the generator adds."""
    tasks = {
        "SimCLR": make_step(PLAIN),
        "ResNet18 generator": make_step({**NOISY, "noise": {"generator": "resnet18", "mean": "learned"}}),
        "shared generator": make_step({**NOISY, "noise": {"generator": "shared", "mean": "learned"}}),
    }
    with flushed_denormals():
        times = in_turns(tasks, turns=TURNS)
    ratios = {f"{name} / SimCLR, images": ratio(times, name, "SimCLR") for name in tasks if name != "SimCLR"}
    return {"ratios": ratios, "batch": BATCH, "milliseconds": milliseconds(times)}
