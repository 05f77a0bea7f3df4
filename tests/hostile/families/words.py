"""What a user types: every flag of every verb, and every setting, with hostile values."""

from __future__ import annotations

import math
import shutil
import typing
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from glob import escape
from pathlib import Path
from typing import Any

import typer.main
from tests.hostile.case import MARKER, Case, Check, Expect, Generator
from tests.hostile.oracles import finite_weights, sound_predictions
from tests.hostile.reference import TINY

from pinoise.choices import EMBEDDINGS, ENCODER, ENGINES, GENERATOR, METHOD, MOST_PROCESSES, OBJECTIVE, PAIRINGS, Kind
from pinoise.cli.app import app
from pinoise.experiments.recipes import RECIPES
from pinoise.paper.reproduce.paper import SCALES
from pinoise.training.config import Settings, read_choice
from pinoise.training.config.section import _options_model

PEOPLE = ("--data", "people.csv", "--label", "group")
TRAIN = ("--out", "run", "--epochs", "1", *TINY)
BASE: dict[str, tuple[str, ...]] = {
    "train": (*PEOPLE, *TRAIN),
    "embed": ("people", "--data", "people.csv", "--out", "out.npy"),
    "predict": ("voters", "--data", "people.csv", "--out", "out.csv"),
    "evaluate": ("people",),
    "report": ("people", "--out", "page"),
    "export": ("people", "--out", "out.onnx"),
    "compare": (
        *(*PEOPLE, "--methods", "fixed", "--seeds", "1", "--epochs", "1"),
        *("--device", "cpu", "--set", "encoder.hidden=8", "--fresh"),
    ),
    "cost": ("people/config.yaml", *PEOPLE, "--steps", "1", *TINY),
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
TEXTS = (
    *("", " ", "-1", "0", "1.5", "1e3", "nan", "inf", "-inf", "true", "١٢", "0x10", "1_0", str(2**63), str(2**64)),
    *("9" * 5000, "a" * 5000, "\x1b[2J", "a\nb", "--help", "%s%n", f"$(touch {MARKER})", f"`touch {MARKER}`", "💣"),
    *("\udcff", "~nosuchuser/x", "../../x", "/dev/null", "/dev/full", "/", ".", "a:b:c", ":", "x:", ":x"),
    *("no.such:one", "pinoise:no_such", "[1, 2]", "{a: 1}", "null", "cpu:banana", "cuda:99", "gpu", "-", "'", '"'),
    "people.csv",
)
"""Values of flags."""
YAML = (
    *("true", "null", "[]", "{}", ".nan", ".inf", "1e400", "-1", "0", "1", "1.5", "'2'", "2", "x", "''", "-0.0"),
    *(str(10**12), str(2**64), "9" * 5000, "1e-300", "1e300", "0x10", "1_0", "1:30", "2020-01-01", "x" * 5000),
    *("[1, 2]", "{a: 1}", "{name: x}", "{name: 1}", "é", '"\\0"', '"\\e[2J"', '"a\\nb"', "'a:b:c'", "'no.such:one'"),
    *(f"!!python/object/apply:os.system ['touch {MARKER}']", f"!!python/name:os.system {MARKER}", "!!binary aGVsbG8="),
    *("[" * 3000, "[" * 300 + "]" * 300, "&a [*a]", "*a", "{[1, 2]: 3}", "? x", "a: b: c", "%TAG"),
)
"""Values of settings."""
PARTS: dict[str, Kind] = {"encoder": ENCODER, "method": METHOD, "noise.generator": GENERATOR, "objective": OBJECTIVE}


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


ALLOWED: tuple[tuple[Callable[[str], bool], tuple[str, ...]], ...] = (
    (whole(0), ("train --seed", "evaluate --seed", "report --seed", "cost --steps")),
    (whole(1), ("train --epochs", "report --samples", "compare --epochs", "compare --steps")),
    (whole(1), ("demo --seeds", "reproduce --seeds")),
    (whole(2), ("train --batch-size", "train --rows", "compare --batch-size", "compare --rows", "evaluate --draws")),
    (whole(2), ("cost --batch-size", "cost --rows")),
    (whole(5), ("evaluate --rows",)),
    (whole(1, MOST_PROCESSES), ("embed --devices", "evaluate --devices")),
    (positive, ("train --learning-rate", "train --temperature", "cost --tflops")),
    (("auto", "cpu").__contains__, ("train --device", "compare --device", "cost --device")),
    (("age", "town", "income", "group", "", "0", "-1").__contains__, ("train --label", "train --target")),
    (("auto", *PAIRINGS).__contains__, ("train --pairing",)),
    (("zero", "learned").__contains__, ("train --mean",)),
    (("gaussian", "uniform").__contains__, ("train --distribution",)),
    (tuple(ENGINES).__contains__, ("train --engine", "embed --engine")),
    (("train", "test").__contains__, ("embed --part",)),
    (("embedding", "noise").__contains__, ("export --what",)),
    (tuple(RECIPES).__contains__, ("compare --methods",)),
    (tuple(EMBEDDINGS).__contains__, ("compare --embedding",)),
    (tuple(SCALES).__contains__, ("reproduce --scale",)),
)
"""Where the documentation says what is allowed, everything else must be refused."""
ALLOWED_OF = {flag: allowed for allowed, flags in ALLOWED for flag in flags}
SWITCHES = ("--json", "--fresh", "--information", "--force", "--trust", "--list")
ENDLESS = ("train --epochs", "compare --epochs", "compare --steps", "compare --seeds", "demo --seeds")
"""A large value of these is a wish to wait long, which is granted."""


def flags() -> list[tuple[str, str, str]]:
    """Return every verb, option and hostile value."""
    verbs: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    every = [(verb, parameter.opts[0]) for verb, parsed in verbs.items() for parameter in parsed.params]
    return [
        (verb, option, value)
        for verb, option in every
        for value in TEXTS
        # Each seed of the demo takes half a minute.
        if not (f"{verb} {option}" in ENDLESS and whole(1 if verb == "demo" else 100)(value))
        and (verb, value) != ("demo", "")
    ]


def settings() -> Iterator[tuple[str, Any]]:
    """Yield every setting: its path and its type. A label may be any number of a column, which is looked up."""
    for name, field in Settings.model_fields.items():
        section: Any = field.annotation
        if is_dataclass(section):
            hints = typing.get_type_hints(section)
            yield from (
                (f"{name}.{key}", hint) for key, hint in hints.items() if key not in ("label", "__pydantic_config__")
            )
        elif isinstance(section, type) and hasattr(section, "model_fields"):
            yield from ((f"{name}.{key}", inner.annotation) for key, inner in section.model_fields.items())
        else:
            yield name, section


def options(kinds: dict[str, Kind]) -> Iterator[tuple[str, str, str, Any]]:
    """Yield every option of every part of the package: its section, part, name and type."""
    for section, kind in kinds.items():
        for name, path in kind.names.items():
            for option, field in _options_model(read_choice(name, kind, "").part).model_fields.items() if path else ():
                yield section, name, option, field.annotation


def assignments() -> list[tuple[str, ...]]:
    """Return the values of ``--set`` that give every setting every hostile value."""
    single = [
        (f"{path}={value}",)
        for path in ("data.label", *(path for path, _ in settings()))
        for value in YAML
        if not (path == "training.epochs" and whole(100)(value))
    ]
    inner = {(section, part, option) for section, part, option, _ in options(PARTS)}
    return single + [
        (f"{section}={part}", f"{section}.{option}={value}")
        for section, part, option in sorted(inner)
        for value in YAML
    ]


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return flags and settings in turn, spread evenly over all of them and all values; another seed has other ones."""
    step = 7919  # a prime, so that neighbours are far apart
    typed, assigned = flags(), assignments()
    made = []
    for number in range(size):
        place = (number // 2 + seed * size) * step
        if number % 2:
            made.append(_flag(number, *typed[place % len(typed)], seed))
        else:
            made.append(_setting(number, assigned[place % len(assigned)], seed))
    return tuple(made)


def _flag(number: int, verb: str, option: str, value: str, seed: int) -> Case:
    base = BASE[verb]
    if option == "--target":  # the flag that takes the place of another
        base = tuple(word for word in base if word not in ("--label", "group"))
    # A positional argument takes the place of the run folder.
    call = (verb, *base, f"{option}={value}") if option.startswith("--") else (verb, value, *base[1:])
    extra = ("--information",) if option == "--draws" else ()
    allowed = ALLOWED_OF.get(f"{verb} {option}")
    refused = option in SWITCHES or (allowed is not None and not allowed(value))
    expect: Expect = "sentence" if refused else "either"

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")
        for run in ("people", "voters"):
            shutil.copytree(reference / run, run)

    return Case(
        "words", number, f"{verb} {option}={value[:30]!r}", seed, (*call, *extra), make, expect,
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


def _setting(number: int, assigned: tuple[str, ...], seed: int) -> Case:
    """Return the case of a setting, of whose type a sentence is expected elsewhere (``test_setting_values.py``)."""
    section = assigned[0].partition("=")[0]
    given = [word for word in TINY if not word.startswith(f"{section}.") or len(assigned) == 1]
    words = [word for at, word in enumerate(given) if word != "--set" or "=" in "".join(given[at + 1 : at + 2])]
    call = ["train", *PEOPLE, "--out", "run", "--epochs", "1", *words]
    call += [word for text in assigned for word in ("--set", text)]

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")

    return Case(
        "words", number, f"train --set {assigned[-1][:60]!r}", seed, tuple(call), make, "either", _right("train"),
        ("run", "run/*"), limit=60, hungry=True,
    )  # fmt: skip
