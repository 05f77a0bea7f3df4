"""Every setting, from the signatures of the sections themselves, with hostile values, by ``--set`` and by YAML."""

from __future__ import annotations

import dataclasses
import inspect
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from annotated_types import Ge, Gt, Interval, Le, Lt
from pydantic import BaseModel
from tests.hostile.case import MARKER, Case, Check, Expect, Generator
from tests.hostile.oracles import finite_weights
from tests.hostile.reference import TINY

from pinoise.choices import ENCODER, GENERATOR, METHOD, OBJECTIVE, VIEW, Kind, find, options_of
from pinoise.training.config import DataSettings, HeadSettings, NoiseSettings, Settings, TrainingSettings, ViewSettings

VALUES = (
    *("true", "null", "[]", "{}", ".nan", ".inf", "-.inf", "1e400", "-1", "0", "1", "1.5", "'2'", "2", "x", "''"),
    *(str(10**12), str(2**63), str(2**64), "9" * 5000, "1e-300", "1e300", "-0.0", "0x10", "1_0", "1:30", "2020-01-01"),
    *("[1, 2]", "{a: 1}", "{name: x}", "{name: 1}", "é", '"\\0"', '"\\e[2J"', '"a\\nb"', "'a:b:c'", "'no.such:one'"),
    *(f"!!python/object/apply:os.system ['touch {MARKER}']", f"!!python/name:os.system {MARKER}", "!!binary aGVsbG8="),
    *("[" * 3000, "[" * 300 + "]" * 300, "&a [*a]", "*a", "{[1, 2]: 3}", "? x", "a: b: c", "%TAG", "x" * 5000),
)
BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]\n" for n in range(9))
"""A YAML file of a few hundred bytes that stands for 9⁹ values."""

PARTS: dict[str, Kind] = {
    "encoder": ENCODER,
    "method": METHOD,
    "objective": OBJECTIVE,
    "noise.generator": GENERATOR,
}
GIVEN = {
    "data.source": ("--data", "people.csv"),
    "data.label": ("--label", "group"),
    "training.epochs": ("--epochs", "1"),
}
"""Flags of every case, but for that of the setting in question."""


def hints_of(part: Any) -> dict[str, Any]:
    """Return the types of a part's options."""
    made = getattr(part, "build", None) if isinstance(part, type) else None
    found: dict[str, Any] = {}
    for function in (inspect.getattr_static(part, "__init__") if isinstance(part, type) else part, made):
        found |= {} if function is None else get_type_hints(function, include_extras=True)
    return found


def declared() -> Iterator[tuple[str, Any, str | None]]:
    """Yield the path of every setting, its type if it is plain, and the name of the part that it belongs to."""
    hints = get_type_hints(DataSettings, include_extras=True)
    for field in dataclasses.fields(DataSettings):
        yield f"data.{field.name}", hints[field.name], None
    sections: dict[str, type[BaseModel]] = {
        "head": HeadSettings,
        "noise": NoiseSettings,
        "views": ViewSettings,
        "training": TrainingSettings,
    }
    for section, kind in sections.items():
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if name in kind.model_fields:
                yield f"{section}.{name}", hint, None
    yield "embedding", get_type_hints(Settings, include_extras=True)["embedding"], None
    for path, group in PARTS.items():
        yield path, None, None
        for part in (name for name, where in group.names.items() if where):
            types = hints_of(find(group, part))
            for option in options_of(find(group, part)):
                yield f"{path}.{option}", types.get(option), part
    for view in VIEW.names:
        yield "views.augmentations", None, view


def may_hold(hint: Any, value: Any) -> bool | None:
    """Return whether a plain type allows a value; None where this cannot be told.

    >>> may_hold(int, True), may_hold(float, float("nan")), may_hold(Annotated[int, Ge(1)], 0), may_hold(int, 3)
    (False, False, False, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        outer = may_hold(inner[0], value)
        return outer and not any(_outside(bound, value) for bound in inner[1:])
    if origin in (Union, UnionType):
        answers = [may_hold(item, value) for item in inner]
        return True if True in answers else None if None in answers else False
    if origin is Literal:
        return value in inner and not isinstance(value, bool)
    if hint in (int, float):
        if isinstance(value, str):
            return None if _number(value) else False
        sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return sound and (hint is float or value == int(value))
    if hint is NoneType:
        return value is None
    return None


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _outside(bound: Any, value: Any) -> bool:
    if hasattr(bound, "metadata"):  # pydantic's Field
        return any(_outside(item, value) for item in bound.metadata)
    if isinstance(value, str) or value is None:
        return False
    parts: dict[str, Callable[[Any], bool]] = {
        "ge": lambda limit: value < limit,
        "gt": lambda limit: value <= limit,
        "le": lambda limit: value > limit,
        "lt": lambda limit: value >= limit,
    }
    if not isinstance(bound, Ge | Gt | Le | Lt | Interval):
        return False
    return any(
        getattr(bound, name, None) is not None and outside(getattr(bound, name)) for name, outside in parts.items()
    )


def expected(hint: Any, text: str) -> Expect:
    """Return whether a value must be refused."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return "sentence"
    return "sentence" if hint is not None and may_hold(hint, value) is False else "either"


def grid() -> list[tuple[str, Any, str | None, str]]:
    """Return every setting with every hostile value, but for wishes to train for very long."""
    return [
        (path, hint, part, value)
        for path, hint, part in declared()
        for value in VALUES
        if not (path == "training.epochs" and value.isdecimal() and int(value[:9]) > 100)
    ]


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return cases spread evenly over all settings and values, then whole files."""
    files = _files(seed)
    every, step = grid(), 7919
    singles = [
        _case(number + len(files), *every[(number + seed * size) * step % len(every)], seed)
        for number in range(size - len(files))
    ]
    return (*files, *singles)


def _make(config: str | bytes | None) -> Any:
    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")
        if config is not None:
            Path("config.yaml").write_bytes(config if isinstance(config, bytes) else config.encode())

    return make


def _right() -> Check:
    return lambda reference: finite_weights(Path("run"))


def _case(number: int, path: str, hint: Any, part: str | None, value: str, seed: int) -> Case:
    flags = {"training.batch_size": "--batch-size", "training.device": "--device"}
    base = [word for word in TINY if not word.startswith(f"{path}=")]
    if path in flags:
        at = base.index(flags[path])
        del base[at : at + 2]
    call = ["train", "--out", "run"]
    call += [word for setting, words in GIVEN.items() if setting != path for word in words]
    section = path.rpartition(".")[0]
    by_file = number % 3 == 0
    config = None
    if part is not None and path == "views.augmentations":
        text = f"{path}=[{{name: {part}, probability: {value}}}]"
    else:
        text = f"{path}={value}"
        if part is not None and section in PARTS:
            call += ["--set", f"{section}={part}"]
            base = [word for word in base if not word.startswith(f"{section}.")]
    # An option of --set whose value was taken away goes too.
    words = [word for at, word in enumerate(base) if word != "--set" or (at + 1 < len(base) and "=" in base[at + 1])]
    if by_file and part is None:
        config, keys = value, path.split(".")
        for depth, key in reversed(list(enumerate(keys))):
            config = f"{key}:{' ' if depth == len(keys) - 1 else chr(10)}" + (
                config if depth == len(keys) - 1 else "".join(f"  {line}\n" for line in config.splitlines())
            )
        call += ["--config", "config.yaml", *words]
    else:
        call += [*words, "--set", text]
    return Case(
        "settings", number, f"{'file' if config else 'set'}: {part or ''} {text[:60]}", seed, tuple(call),
        _make(config), expected(hint, value) if part is None or section in PARTS else "either", _right(),
        ("run", "run/*"), limit=60, hungry=True,
    )  # fmt: skip


def _files(seed: int) -> list[Case]:
    """Return whole configuration files that are hostile."""
    deep = "".join(f"{'  ' * depth}a:\n" for depth in range(1500))
    contents: list[tuple[str, str | bytes]] = [
        ("an alias bomb", BOMB),
        ("an alias bomb in a setting", f"{BOMB}training: {{epochs: *a8}}\n"),
        ("an alias bomb as a name", f"{BOMB}method: *a8\n"),
        ("an alias bomb as an option", f"{BOMB}method: {{name: simclr, temperature: *a8}}\n"),
        ("a value that holds itself", "training: &a\n  epochs: *a\n"),
        ("a section that holds itself", "method: &a {name: *a}\n"),
        ("deep nesting", deep),
        ("deep brackets", "training: " + "[" * 5000),
        ("nothing", ""),
        ("a list", "- 1\n"),
        ("a number", "5"),
        ("bytes", bytes(range(256))),
        ("UTF-16", "training: {epochs: 1}".encode("utf-16")),
        ("a payload by tag", f"training: !!python/object/apply:os.system ['touch {MARKER}']"),
        ("a payload by module", f"training: !!python/module:os.{MARKER}"),
        ("an unknown section", "trainig: {epochs: 1}"),
        ("a number as a key", "1: 2"),
        ("a list as a key", "? [1, 2]\n: 3"),
        ("nothing as a key", "~: 3"),
        ("a key twice", "training: {epochs: 1}\ntraining: {epochs: 2}"),
        ("a section as text", "training: hello"),
        ("an endless integer", f"training: {{seed: {'9' * 5000}}}"),
        ("two documents", "training: {epochs: 1}\n---\ntraining: {epochs: 2}\n"),
        ("escape codes as a key", '"\\e[2J": 1'),
        ("a merge of everything", "<<: {training: {epochs: 1}}\n"),
    ]
    call = (
        "train",
        *(word for words in GIVEN.values() for word in words),
        "--out",
        "run",
        *TINY,
        "--config",
        "config.yaml",
    )
    return [
        Case("settings", number, f"file: {label}", seed, call, _make(content), "either", _right(), ("run", "run/*"))
        for number, (label, content) in enumerate(contents)
    ]
