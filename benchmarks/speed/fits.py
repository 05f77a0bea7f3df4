"""Whole fits: the default noise against random noise, and what is not matrix products in a fit of a small table."""

from __future__ import annotations

import cProfile
import pstats
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from pinoise import PiNDA
from pinoise.data.rows import make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.paper.rehearsal import Rehearsal
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import fit
from speed.skipping import samples
from speed.steps import make_large_product
from speed.timing import Task, in_turns, milliseconds, ratio

EPOCHS, TURNS = 20, 2  # of the 100 that are the default; the first search for neighbours weighs five times as much
PARTS = {
    "all of training": ("training/loop.py", "train"),
    "forward pass of the encoder": ("methods/simclr.py", "forward"),
    "backward pass": ("autograd/__init__.py", "backward"),
    "optimiser": ("optim/adam.py", "step"),
    "neighbours of every row": ("noise/support.py", "_table"),
    "neighbours in the bank": ("noise/module.py", "follow"),
    "draws of the noise": ("noise/module.py", "draw"),
}
"""Where the functions stand that a profile looks at."""

SMALL_EPOCHS = 10


def make_fit(x: np.ndarray, changes: dict[str, Any], epochs: int) -> Task:
    """Return a function that fits a model to samples, all of training but reading the data."""
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    settings = parse_settings({**changes, "training": {"epochs": epochs, "information_draws": 0, "device": "cpu"}})
    return lambda: fit(settings, standardizer, rows, reporter=Quiet())


def not_products() -> float:
    """Return the share of a default fit of digits that is not its matrix products at the rate of a large product."""
    x = load_digits().data
    settings = parse_settings({})
    _, products, _ = Rehearsal(settings, x.shape[1:], len(x)).count_step()
    large, operations = make_large_product()
    tasks: dict[str, Task] = {"fit": lambda: PiNDA(epochs=SMALL_EPOCHS, device="cpu").fit(x), "large": large}
    times = in_turns(tasks, turns=TURNS)
    steps = SMALL_EPOCHS * (len(x) // settings.training.batch_size)
    return round(1 - steps * 2 * products / (operations * ratio(times, "fit", "large")), 3)


def profile(task: Task) -> dict[str, float]:
    """Return the share of each part of a default fit that random noise does not have, by the processor's clock."""
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(task)
    found: Any = pstats.Stats(profiler)
    spent = {
        title: sum(
            cumulative
            for (file, _, function), (_, _, _, cumulative, _) in found.stats.items()
            if file.endswith(part) and function == name
        )
        for title, (part, name) in PARTS.items()
    }
    spent["draws of the noise"] -= spent["neighbours of every row"] + spent["neighbours in the bank"]
    whole = spent.pop("all of training")
    return {title: round(seconds / whole, 3) for title, seconds in spent.items()}


def measure() -> dict[str, Any]:
    """Return the ratio of whole fits, and what a small fit does besides products."""
    ratios = {"not products, PiNDA.fit on digits": not_products()}
    x = samples("hapt561")
    tasks = {"default": make_fit(x, {}, EPOCHS), "random noise": make_fit(x, {"objective": "fixed"}, EPOCHS)}
    times = in_turns(tasks, turns=TURNS)
    ratios["default fit / random-noise fit, HAPT-561"] = ratio(times, "default", "random noise")
    shares = profile(tasks["default"])
    return {"ratios": ratios, "rows": len(x), "epochs": EPOCHS, "milliseconds": milliseconds(times), "profile": shares}


def one_fit() -> float:
    """Return the wall seconds of a default ``PiNDA.fit`` on digits."""
    began = time.perf_counter()
    PiNDA(device="cpu").fit(load_digits().data)
    return time.perf_counter() - began
