"""Every flag of every verb with hostile values."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from glob import escape
from pathlib import Path
from typing import Any

import typer.main
from tests.hostile.case import MARKER, Case, Check, Expect, Generator
from tests.hostile.oracles import finite_weights, sound_predictions
from tests.hostile.reference import TINY

from pinoise.choices import EMBEDDINGS, ENGINES, MOST_PROCESSES, PAIRINGS
from pinoise.cli.app import app
from pinoise.experiments.recipes import RECIPES, SUITES
from pinoise.paper.reproduce.paper import SCALES

BASE: dict[str, tuple[str, ...]] = {
    "train": ("--data", "people.csv", "--label", "group", "--out", "run", "--epochs", "1", *TINY),
    "embed": ("people", "--data", "people.csv", "--out", "out.npy"),
    "predict": ("voters", "--data", "people.csv", "--out", "out.csv"),
    "evaluate": ("people",),
    "report": ("people", "--out", "page"),
    "export": ("people", "--out", "out.onnx"),
    "compare": (
        *("--data", "people.csv", "--label", "group", "--methods", "fixed", "--seeds", "1", "--epochs", "1"),
        *("--device", "cpu", "--set", "encoder.hidden=8", "--fresh"),
    ),
    "cost": ("people/config.yaml", "--data", "people.csv", "--label", "group", "--steps", "1", *TINY),
    "reproduce": ("T10", "--scale", "smoke"),
    "datasets": (),
    "demo": (),
}
WRITES = {
    "train": ("run", "run/*"),
    "embed": ("out.npy",),
    "predict": ("out.csv",),
    "evaluate": ("people/evaluation.json",),
    "report": ("page", "page/*"),
    "export": ("out.onnx",),
}
COMMON = (
    *("", " ", "-1", "0", "1.5", "1e3", "nan", "inf", "-inf", "true", "١٢", "0x10", "1_0", str(2**63), str(2**64)),
    *("9" * 5000, "a" * 5000, "\x1b[2J", "a\nb", "--help", "%s%n", f"$(touch {MARKER})", f"`touch {MARKER}`", "💣"),
    *(
        "\udcff",
        "~nosuchuser/x",
        "../../x",
        "/dev/null",
        "/dev/full",
        "/",
        ".",
        "a:b:c",
        ":",
        "x:",
        ":x",
        "no.such:one",
    ),
    *(
        "no.such:one",
        "pinoise:no_such",
        "[1, 2]",
        "{a: 1}",
        "null",
        "cpu:banana",
        "cuda:99",
        "gpu",
        "-",
        "'",
        '"',
        "people.csv",
    ),
)


def whole(least: int, most: int | None = None) -> Callable[[str], bool]:
    """Return whether text is a whole number in a range, as Python reads it."""

    def allowed(text: str) -> bool:
        try:
            value = int(text) if len(text) < 4000 else -(10**9)
        except ValueError:
            return False
        return value >= least and (most is None or value <= most)

    return allowed


def positive(text: str) -> bool:
    """Whether text is a finite number above 0."""
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


ALLOWED: dict[tuple[str, str], Callable[[str], bool]] = {
    ("train", "--epochs"): whole(1),
    ("train", "--batch-size"): whole(2),
    ("train", "--rows"): whole(2),
    ("train", "--seed"): whole(0),
    ("train", "--learning-rate"): positive,
    ("train", "--temperature"): positive,
    ("train", "--pairing"): lambda text: text in ("auto", *PAIRINGS),
    ("train", "--mean"): lambda text: text in ("zero", "learned"),
    ("train", "--distribution"): lambda text: text in ("gaussian", "uniform"),
    ("train", "--device"): lambda text: text in ("auto", "cpu"),
    ("train", "--label"): lambda text: text in ("age", "town", "income", "group", "", "0", "-1"),
    ("train", "--target"): lambda text: text in ("age", "town", "income", "group", "", "0", "-1"),
    ("train", "--engine"): lambda text: text in ENGINES,
    ("embed", "--engine"): lambda text: text in ENGINES,
    ("embed", "--devices"): whole(1, MOST_PROCESSES),
    ("evaluate", "--devices"): whole(1, MOST_PROCESSES),
    ("embed", "--part"): lambda text: text in ("train", "test"),
    ("evaluate", "--rows"): whole(5),
    ("evaluate", "--draws"): whole(2),
    ("evaluate", "--seed"): whole(0),
    ("report", "--samples"): whole(1),
    ("report", "--seed"): whole(0),
    ("export", "--what"): lambda text: text in ("embedding", "noise"),
    ("compare", "--epochs"): whole(1),
    ("compare", "--steps"): whole(1),
    ("compare", "--rows"): whole(2),
    ("compare", "--batch-size"): whole(2),
    ("compare", "--device"): lambda text: text in ("auto", "cpu"),
    ("compare", "--methods"): lambda text: text in RECIPES,
    ("compare", "--suite"): lambda text: text in SUITES,
    ("compare", "--embedding"): lambda text: text in EMBEDDINGS,
    ("cost", "--rows"): whole(2),
    ("cost", "--batch-size"): whole(2),
    ("cost", "--steps"): whole(0),
    ("cost", "--tflops"): positive,
    ("cost", "--device"): lambda text: text in ("auto", "cpu"),
    ("demo", "--seeds"): whole(1),
    ("reproduce", "--scale"): lambda text: text in SCALES,
    ("reproduce", "--seeds"): whole(1),
}
"""Where the documentation says what is allowed, everything else must be refused."""

ENDLESS = {("train", "--epochs"), ("compare", "--epochs"), ("compare", "--steps")} | {
    (verb, "--seeds") for verb in ("compare", "demo")
}
"""A large value of these is a wish to wait long, which is granted."""


def grid() -> list[tuple[str, str, str]]:
    """Return every verb, option and hostile value."""
    verbs: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = []
    for verb, parsed in verbs.items():
        for option in (parameter.opts[0] for parameter in parsed.params):
            for value in COMMON:
                large = whole(1 if verb == "demo" else 100)(value)  # each seed of the demo takes half a minute
                if not (large and (verb, option) in ENDLESS) and (verb != "demo" or value not in ("",)):
                    found.append((verb, option, value))
    return found


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return cases spread evenly over all verbs, options and values; another seed has other ones."""
    every = grid()
    step = 7919  # a prime, so that neighbours in the grid are far apart
    return tuple(_case(number, *every[(number + seed * size) * step % len(every)], seed) for number in range(size))


def _case(number: int, verb: str, option: str, value: str, seed: int) -> Case:
    base = BASE[verb]
    # A positional argument takes the place of the run folder.
    if option == "--target":  # the flag that takes the place of another
        base = tuple(word for word in base if word not in ("--label", "group"))
    call = (verb, *base, f"{option}={value}") if option.startswith("--") else (verb, value, *base[1:])
    switch = option in ("--json", "--fresh", "--information", "--force", "--trust", "--list")
    extra = ("--information",) if option == "--draws" else ()
    expect: Expect = "either"
    allowed = ALLOWED.get((verb, option))
    if switch or (allowed is not None and not allowed(value)):
        expect = "sentence"

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")
        for run in ("people", "voters"):
            shutil.copytree(reference / run, run)

    return Case(
        "flags", number, f"{verb} {option}={value[:30]!r}", seed, (*call, *extra), make, expect,
        _right(verb), _writes(verb, option, value),
    )  # fmt: skip


def _writes(verb: str, option: str, value: str) -> tuple[str, ...]:
    """Return what a verb may write: its output, which may have any name but that of an input."""
    if verb == "report" and option == "--out" and value in ("", "."):
        return ("report.html", "*.png")  # the current folder
    if option not in ("--out", "--html", "--cache") or value in ("people.csv", ".", "", "/"):
        return WRITES.get(verb, ())
    plain = escape(value)
    return (plain, f"{plain}/*", escape(value.partition("/")[0]))


def _right(verb: str) -> Check:
    def check(reference: Path) -> str | None:
        if verb == "predict" and Path("out.csv").exists():
            return sound_predictions("out.csv")(reference)
        return finite_weights(Path("run")) if verb == "train" and Path("run").exists() else None

    return check
