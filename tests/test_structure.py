"""The house stays in order: every default stands once, the way to an equation is short, functions are readable."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

import pinoise
from pinoise import PiNDA
from pinoise.choices import ENCODER, GENERATOR, METHOD, OBJECTIVE, VIEW, find, options_of
from pinoise.data.rows import make_rows
from pinoise.methods import simclr
from pinoise.noise.draw import FAMILIES
from pinoise.training.build import build_standardizer, seeded_model
from pinoise.training.callbacks import Quiet
from pinoise.training.config import (
    DataSettings,
    HeadSettings,
    NoiseSettings,
    TrainingSettings,
    ViewSettings,
    parse_settings,
)
from pinoise.training.loop import train
from pinoise.training.run import machine_of

ROOT = Path(pinoise.__file__).parent

DIFFERENT = {
    ("device", "'cpu'"): "what a function without a configuration computes on",
    ("strength", "0.5"): "SimCLR's colours for small images, and CLAE's adversarial step",
    ("momentum", "0.99"): "MoCo's key network, and DINO's teacher",
}
"""Options that share a name and a value and have nothing else to do with each other."""


def option_names() -> set[str]:
    """Everything that a user can set, through any door."""
    names = set(inspect.signature(PiNDA).parameters) | {field.name for field in fields(DataSettings)}
    for section in (HeadSettings, NoiseSettings, ViewSettings, TrainingSettings):
        names |= set(section.model_fields)
    for kind in (ENCODER, METHOD, GENERATOR, OBJECTIVE, VIEW):
        for part in filter(None, (find(kind, name) for name in kind.names)):
            names |= set(options_of(part))
    return names


def declared(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield every parameter and every field of a class with its default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            positional = [*node.args.posonlyargs, *node.args.args]
            with_default = positional[len(positional) - len(node.args.defaults) :]
            yield from ((argument.arg, value) for argument, value in zip(with_default, node.args.defaults, strict=True))
            for argument, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                if value is not None:
                    yield argument.arg, value
        elif isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                    yield line.target.id, line.value


def is_literal(value: ast.expr) -> bool:
    """Whether a default is written out; nothing, no and 0 are no choices."""
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(inner, ast.Constant) and not isinstance(inner.value, bool) and inner.value not in (None, 0)


def test_the_default_of_every_option_stands_once() -> None:
    places = defaultdict(list)
    names = option_names()
    assert len(names) > 60
    for path in ROOT.rglob("*.py"):
        for name, value in declared(ast.parse(path.read_text(encoding="utf-8"))):
            if name in names and is_literal(value):
                places[name, ast.unparse(value)].append(f"{path.relative_to(ROOT)}:{value.lineno}")
    assert places["temperature", "0.5"] == []  # a constant has it
    copies = {option: found for option, found in places.items() if len(found) > 1 and option not in DIFFERENT}
    assert copies == {}
    assert [option for option in DIFFERENT if len(places[option]) < 2] == []


def test_no_function_is_longer_than_sixty_lines_but_the_loop() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name for name, length in lengths.items() if length > 60} == {"training/loop.py:train"}


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The files of the package on the call stack when the loss is computed, and when ε is drawn, from the verb on."""
    found: dict[str, list[str]] = {}

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if name not in found:
                paths = [Path(frame.filename) for frame in traceback.extract_stack()[:-1]]
                inside = [str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)]
                found[name] = list(dict.fromkeys(inside[inside.index("cli/train.py") :]))
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(simclr, "joint_nt_xent", watched("loss", simclr.joint_nt_xent))
    gaussian = FAMILIES["gaussian"]._replace(base=watched("draw", torch.randn_like))
    monkeypatch.setitem(FAMILIES, "gaussian", gaussian)
    return found


def test_the_way_from_the_command_to_the_equations_is_short(
    stacks: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [("encoder.hidden", 8), ("training.information_draws", 0), ("training.device", "cpu")]
    sets = [word for path, value in small for word in ("--set", f"{path}={value}")]
    run = ["pinoise", "train", "--data", "wine", "--epochs", "1", "--out", str(tmp_path / "run"), *sets]
    monkeypatch.setattr("sys.argv", run)
    from pinoise.cli import main

    main()
    assert stacks["loss"] == [
        "cli/train.py",
        "training/run.py",
        "training/loop.py",
        "training/objectives.py",
        "methods/simclr.py",
    ]
    assert stacks["draw"] == [
        "cli/train.py",
        "training/run.py",
        "training/loop.py",
        "training/objectives.py",
        "views/base.py",
        "noise/module.py",
        "noise/draw.py",
    ]


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


WATCH = """
import sys, threading
called = set()
def look(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1:  # a function: no body of a class or module
        called.add(code.co_filename)
threading.setprofile(look)
sys.setprofile(look)
try:
    exec(sys.argv.pop(1))
except SystemExit:
    pass
sys.setprofile(None)
print("FILES", *sorted(called), sep="\\n")
"""


def files_called(program: str, *arguments: object) -> list[str]:
    """The files of the package in which a program calls a function."""
    command = [sys.executable, "-c", WATCH, program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    paths = map(Path, done.stdout.partition("FILES\n")[2].splitlines())
    return [str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with numbers, names and a class."""
    path = tmp_path_factory.mktemp("people") / "people.csv"
    rows = [f"{20 + number % 50},{number / 7:.2f},{'abc'[number % 3]},{'xy'[number % 2]}" for number in range(120)]
    path.write_text("\n".join(["age,size,town,kind", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.processes
def test_a_run_on_a_csv_executes_few_files(people: Path, tmp_path: Path) -> None:
    program = "from pinoise.cli import main\nmain()"
    found = files_called(
        program, "train", "--data", people, "--label", "kind", "--epochs", 1, "--out", tmp_path / "run"
    )
    assert "data/table/batches.py" in found
    assert len(found) <= 55, found
    assert len([file for file in found if file.startswith("data/")]) <= 20, found


@pytest.mark.processes
def test_a_fit_of_a_frame_executes_few_files(people: Path) -> None:
    program = (
        "import sys, pandas as pd; from pinoise import PiNDA\n"
        "PiNDA(epochs=1, batch_size=64).fit(pd.read_csv(sys.argv[1]).drop(columns='kind'))"
    )
    found = files_called(program, people)
    assert "data/table/encoding.py" in found
    assert len(found) <= 50, found


class StepTrace(Quiet):
    """Notes the files of the package in which the second step of training calls a function."""

    def __init__(self) -> None:
        self.files = set[str]()

    def step(self, done: int) -> None:
        """Listen from the end of the first step to the end of the second."""
        sys.setprofile(self._look if done == 1 else None)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED and path.is_relative_to(ROOT):
            self.files.add(str(path.relative_to(ROOT)))


def test_a_training_step_executes_few_files_and_the_guide_lists_what_a_reader_needs_of_them() -> None:
    settings = parse_settings({"training": {"epochs": 1, "batch_size": 64, "device": "cpu"}})
    x = np.random.default_rng(0).normal(size=(256, 10))
    standardizer = build_standardizer(settings, x)
    rows, trace = make_rows(x, standardizer), StepTrace()
    model, machine = seeded_model(settings, standardizer, rows), machine_of(settings.training)
    train(model, rows, settings.training, machine=machine, reporter=trace)
    assert len(trace.files) <= 12, trace.files
    guide = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = guide.partition("## Follow one batch to its loss")[2]
    listed = set(re.findall(r"^\| `([a-z_/]+\.py)` \|", section, re.MULTILINE))
    assert len(listed) == 8
    assert listed <= trace.files
