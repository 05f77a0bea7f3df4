"""Run folders of a hostile hand: every file of a real run damaged or replaced, in every verb that reads it."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from tests.hostile.case import Case, Check, Generator, finished
from tests.hostile.mutations import BYTES, flip, mutate_value
from tests.hostile.oracles import finite_weights, same_array, same_predictions, same_weights, sound_predictions
from tests.hostile.reference import Bomb

Change = Callable[[Path, Generator], None]  # of a run folder

FILES = (
    *("config.yaml", "data.json", "encoder.safetensors", "noise.safetensors", "standardizer.safetensors"),
    *("checkpoints/last.ckpt", "metrics.csv", "environment.json", "embedding.safetensors", "classifier.safetensors"),
    "evaluation.json",
)
LAST, CLASSIFIER = "checkpoints/last.ckpt", "classifier.safetensors"
VERBS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Check]] = {
    "embed": (
        ("embed", "mine", "--data", "people.csv", "--out", "out.npy"),
        ("out.npy",),
        same_array("out.npy", "people.embedding.npy"),
    ),
    "predict": (
        ("predict", "mine", "--data", "people.csv", "--out", "out.csv"),
        ("out.csv",),
        same_predictions("out.csv", "voters.predictions.csv"),
    ),
    "resume": (
        ("train", "--resume", "mine", "--epochs", "4"),
        ("mine/*",),
        same_weights("mine", "people_longer"),
    ),
    "evaluate": (("evaluate", "mine", "--json"), ("mine/evaluation.json",), lambda reference: _same_scores(reference)),
    "report": (("report", "mine", "--out", "page"), ("page", "page/*"), finished),
    "information": (
        ("evaluate", "mine", "--information", "--draws", "2", "--json"),
        ("mine/evaluation.json",),
        lambda reference: _same_scores(reference),
    ),
}


@dataclass(frozen=True)
class Bad:
    """A kind of bad run folder."""

    label: str
    change: Change
    verb: str | None = None  # the verb that it is for, or all in turn (predict, for the file that only it reads)
    exact: bool = True  # whether a result must be that of the sound run; else it must be finite


def _same_scores(reference: Path) -> str | None:
    found, wanted = (json.loads((run / "evaluation.json").read_text()) for run in (Path("mine"), reference / "people"))
    return None if found["scores"] == wanted["scores"] else "the scores differ from those of the sound run"


def damage(file: str, mutation: Any) -> tuple[str, Change]:
    """Return the change that damages the bytes of a file."""

    def change(run: Path, rng: Generator) -> None:
        (run / file).write_bytes(mutation((run / file).read_bytes(), rng))

    return f"{mutation.__name__} of {file}", change


def retype(file: str) -> tuple[str, Change]:
    """Return the change that replaces a random value of a file of values."""

    def change(run: Path, rng: Generator) -> None:
        values = mutate_value(yaml.safe_load((run / file).read_text()), rng)
        text = json.dumps(values) if file.endswith(".json") else yaml.safe_dump(values, sort_keys=False)
        (run / file).write_text(text)

    return f"another value in {file}", change


def replaced(file: str, what: str, make: Callable[[Path], object]) -> tuple[str, Change]:
    """Return the change that puts something else in the place of a file."""

    def change(run: Path, rng: Generator) -> None:
        (run / file).unlink()
        make(run / file)

    return f"{what} instead of {file}", change


def _pickled(value: Any) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(pickle.dumps(value))


def _saved(value: Any) -> Callable[[Path], object]:
    return lambda path: torch.save(value, path)


def _reader(file: str) -> str | None:
    """The only verb that reads a file, if there is one."""
    return {CLASSIFIER: "predict", "evaluation.json": "report"}.get(file)


def strangers() -> list[Bad]:
    """Return run folders with something else in the place of a file.

    What forged settings, tensors and headers do is in ``test_trust.py`` and ``test_altered_files.py``.
    """
    instead: dict[str, Callable[[Path], object]] = {
        "a folder": Path.mkdir,
        "a FIFO": os.mkfifo,
        "nothing": lambda path: None,
        "a link to itself": lambda path: path.symlink_to(path.name),
        "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
        "a pickle": _pickled(Bomb()),
    }
    found = [Bad(*replaced(file, what, make), _reader(file)) for file in FILES for what, make in instead.items()]
    others: dict[str, Any] = {
        "a list": [1, 2],
        "a tensor": torch.zeros(3),
        "nothing": None,
        "other keys": {"a": 1},
        "a model of text": {"model": "x"},
        "a payload": Bomb(),
    }
    found += [Bad(*replaced(LAST, f"torch.save of {what}", _saved(value)), "resume") for what, value in others.items()]
    return found


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return folders of all kinds in turn: hostile ones first, each once, and damaged ones for ever."""
    hostile = strangers()
    order = np.random.default_rng(5).permutation(len(hostile))
    verbs = tuple(VERBS)
    made: list[Case] = []
    for number in range(size):
        turn = number // 2
        if number % 2 == 0 and turn < len(hostile):
            bad = hostile[order[turn]]
            made.append(_case(number, bad, bad.verb or verbs[turn % len(verbs)], seed))
        else:
            made.append(_damaged(number, turn, verbs, seed))
    return tuple(made)


def _damaged(number: int, turn: int, verbs: tuple[str, ...], seed: int) -> Case:
    """Return the case of a file with damaged bytes, or with another value."""
    file = FILES[turn % len(FILES)]
    verb = verbs[turn % len(verbs)] if turn % 3 else ("resume" if file == LAST else "embed")
    verb = _reader(file) or verb
    if turn % 4 == 1 and file.endswith((".json", ".yaml")):
        # Whoever may write may choose how later data is read; finite numbers are all that is promised.
        return _case(number, Bad(*retype(file), exact=file != "data.json"), verb, seed)
    return _case(number, Bad(*damage(file, flip if turn % 2 else BYTES[turn // 2 % len(BYTES)])), verb, seed)


def _case(number: int, bad: Bad, verb: str, seed: int) -> Case:
    call, writes, right = VERBS[verb]

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")
        shutil.copytree(reference / ("voters" if verb == "predict" else "people"), "mine")
        if verb != "report":
            Path("mine/evaluation.json").unlink(missing_ok=True)
        config = Path("mine/config.yaml")
        config.write_text(config.read_text().replace(str(reference), str(Path.cwd())))
        bad.change(Path("mine"), rng)

    check = right if bad.exact else FINITE.get(verb, finished)
    return Case("runs", number, f"{verb}: {bad.label}", seed, call, make, "either", check, writes)


def _finite_embedding(reference: Path) -> str | None:
    return None if np.isfinite(np.load("out.npy")).all() else "the embedding is not finite"


FINITE: dict[str, Check] = {
    "embed": _finite_embedding,
    "predict": sound_predictions("out.csv"),
    "resume": lambda reference: finite_weights(Path("mine")),
}
