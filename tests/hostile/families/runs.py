"""Run folders of a hostile hand: every file of a real run damaged, forged, replaced, or with a path to a payload."""

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
from tests.hostile import forge
from tests.hostile.case import PAYLOAD, Case, Check, Expect, Generator, finished
from tests.hostile.families.data import Bomb
from tests.hostile.mutations import BYTES, flip, mutate_value
from tests.hostile.oracles import finite_weights, same_array, same_predictions, same_weights, sound_predictions

Change = Callable[[Path, Generator], None]  # of a run folder

FILES = (
    *("config.yaml", "data.json", "encoder.safetensors", "noise.safetensors", "standardizer.safetensors"),
    *("checkpoints/last.ckpt", "metrics.csv", "environment.json", "embedding.safetensors", "classifier.safetensors"),
)
WEIGHTS = tuple(name for name in FILES if name.endswith(".safetensors"))
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
    "report": (("report", "mine", "--out", "page"), ("page", "page/*"), lambda reference: _harmless_page()),
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
    expect: Expect = "either"
    exact: bool = True  # whether a result must be that of the sound run; else it must be finite


def _same_scores(reference: Path) -> str | None:
    found, wanted = (json.loads((run / "evaluation.json").read_text()) for run in (Path("mine"), reference / "people"))
    return None if found["scores"] == wanted["scores"] else "the scores differ from those of the sound run"


def _harmless_page() -> str | None:
    page = Path("page/report.html").read_text()
    return "the page holds a script of the run's" if "<script>steal" in page else None


def damage(file: str, mutation: Any) -> tuple[str, Change]:
    """Return the change that damages the bytes of a file."""

    def change(run: Path, rng: Generator) -> None:
        (run / file).write_bytes(mutation((run / file).read_bytes(), rng))

    return f"{mutation.__name__} of {file}", change


def retype(file: str) -> tuple[str, Change]:
    """Return the change that replaces a random value of a file of values, with its checksum."""

    def change(run: Path, rng: Generator) -> None:
        text = (run / file).read_text()
        if file == "data.json":
            forge.values(run / file, lambda record: mutate_value(record, rng))
        elif file.endswith(".json"):
            (run / file).write_text(json.dumps(mutate_value(json.loads(text), rng)))
        else:
            (run / file).write_text(yaml.safe_dump(mutate_value(yaml.safe_load(text), rng), sort_keys=False))

    return f"another value in {file}", change


def replaced(file: str, what: str, make: Callable[[Path], object]) -> tuple[str, Change]:
    """Return the change that puts something else in the place of a file."""

    def change(run: Path, rng: Generator) -> None:
        (run / file).unlink()
        make(run / file)

    return f"{what} instead of {file}", change


def pointing(section: tuple[str, ...], value: Any) -> tuple[str, Change]:
    """Return the change that names a payload in the configuration, with the payload in all places to look."""

    def change(run: Path, rng: Generator) -> None:
        for folder in (Path(), run):
            (folder / "evil.py").write_text(f"{PAYLOAD}\ndef f(*a, **k): {PAYLOAD}\nclass F: pass\n")
        values = yaml.safe_load((run / "config.yaml").read_text())
        holder = values
        for key in section[:-1]:
            holder = holder[key]
        holder[section[-1]] = value
        (run / "config.yaml").write_text(yaml.safe_dump(values, sort_keys=False))

    return f"{'.'.join(section)} is {value}", change


def rewritten(file: str, label: str, edit: Callable[[Any], Any]) -> tuple[str, Change]:
    """Return the change that forges tensors, with their checksum."""

    return f"{file} with {label}", lambda run, rng: forge.tensors(run / file, edit)


def filled(value: float) -> Callable[[Any], Any]:
    def edit(tensors: Any) -> Any:
        return {
            name: torch.full_like(tensor, value) if torch.is_floating_point(tensor) else tensor
            for name, tensor in tensors.items()
        }

    return edit


def _grown(tensors: Any) -> Any:
    return {name: torch.stack([tensor, tensor]) for name, tensor in tensors.items()}


def _extended(tensors: Any) -> Any:
    return {**tensors, "more": torch.zeros(3)}


def _cast(tensors: Any) -> Any:
    return {name: tensor.to(torch.int32) for name, tensor in tensors.items()}


def _pickled(value: Any) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(pickle.dumps(value))


def _saved(value: Any) -> Callable[[Path], object]:
    return lambda path: torch.save(value, path)


def _array(path: Path) -> None:
    with path.open("wb") as stream:
        np.save(stream, np.arange(3))


def payloads() -> list[Bad]:
    """Return run folders whose configuration names code."""
    found = []
    for path in ("evil:f", "mine.evil:f", "mine.evil:F", "os:system", "builtins:exec", "subprocess:run"):
        for section in (("encoder", "name"), ("method",), ("objective",), ("noise", "generator")):
            found.append(Bad(*pointing(section, path), expect="sentence"))
    values: dict[tuple[str, ...], list[Any]] = {
        ("views", "noise"): ["mine.evil:f"],
        ("views", "augmentations"): [["mine.evil:f"], [{"name": "evil:f", "x": 1}]],
        ("encoder",): [{"name": "module", "factory": "mine.evil:f"}],
        ("noise",): [{"factory": "mine.evil:f"}],
    }
    return found + [
        Bad(*pointing(section, value), expect="sentence") for section, some in values.items() for value in some
    ]


def _reader(file: str) -> str | None:
    """The only verb that reads a file, if there is one."""
    return "predict" if file == CLASSIFIER else None


def strangers() -> list[Bad]:
    """Return run folders with something else in the place of a file."""
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
    return [*found, Bad(*replaced(LAST, "an array", _array), "resume")]


def forged() -> list[Bad]:
    """Return run folders whose tensors and values were changed, with their checksums."""
    no: Expect = "sentence"
    found = []
    for file in WEIGHTS:
        verb = _reader(file) or "embed"
        found += [
            Bad(*rewritten(file, "NaN", filled(float("nan"))), verb, no),
            Bad(*rewritten(file, "infinity", filled(float("inf"))), verb, no),
            Bad(*rewritten(file, "zeros", filled(0.0)), verb, exact=False),
            Bad(*rewritten(file, "1e30", filled(1e30)), verb, exact=False),
            Bad(*rewritten(file, "one axis more", _grown), verb, no),
            Bad(*rewritten(file, "integers", _cast), verb, exact=False),
            Bad(*rewritten(file, "no tensors", lambda tensors: {}), verb, no),
            Bad(*rewritten(file, "one more", _extended), verb, exact=False),
        ]
    for label, edit in VOTES.items():
        found.append(Bad(f"a classifier with {label}", _revoted(edit), "predict", no))
    for file in WEIGHTS[:-1]:  # whose weights are no longer those that the classifier was fitted on
        found.append(Bad(*rewritten(file, "zeros", filled(0.0)), "predict", exact=False))
    edits: dict[str, Callable[[Any], Any]] = {
        "a key less": lambda held: {key: held[key] for key in list(held)[1:]},
        "text for numbers": lambda held: {key: "x" if isinstance(item, int) else item for key, item in held.items()},
        "no model": lambda held: {**held, "model": {}},
        "a step of 10^18": lambda held: {key: 10**18 if key == "step" else item for key, item in held.items()},
        "NaN": lambda held: {**held, "model": filled(float("nan"))(held["model"])},
        "another model": lambda held: {**held, "model": _grown(held["model"])},
    }
    found += [Bad(*rewritten(LAST, label, edit), "resume") for label, edit in edits.items()]
    return [*found, Bad("a script in names", _script, "report", exact=False)]


VOTES: dict[str, Callable[[Any], Any]] = {
    "another format": lambda held: {**held, "format": 2},
    "no seed": lambda held: {key: held[key] for key in held if key != "seed"},
    "one class": lambda held: {**held, "classes": held["classes"][:1]},
    "a class too many": lambda held: {**held, "classes": [*held["classes"], "more"]},
    "a class twice": lambda held: {**held, "classes": held["classes"][:1] * 2},
    "a number as a class": lambda held: {**held, "classes": [1, 2]},
    "no voters": lambda held: {**held, "voters": []},
    "a vote of a payload": lambda held: _votes(held, model="evil:f"),
    "votes of weight 1 each": lambda held: _votes({**held, "voters": held["voters"][:1] * 2}, weight=1.0),
    "a weight of NaN": lambda held: _votes(held, weight=float("nan")),
    "a negative weight": lambda held: _votes(held, weight=-1.0),
    "a strength of NaN": lambda held: _votes(held, model="logistic", strength=float("nan")),
    "a strength of 1e300": lambda held: _votes(held, model="logistic", strength=1e300),
    "no strength": lambda held: _votes(held, model="logistic", strength=None),
    "features unheard of": lambda held: _votes(held, features="all"),
    "the weights of another run": lambda held: {**held, "weights": "0" * 64},
    "values that are a list": lambda held: [1],
}
"""What a hostile hand writes in the header of a classifier."""


def _votes(held: Any, **changes: Any) -> Any:
    return {**held, "voters": [{**voter, **changes} for voter in held["voters"]]}


def _revoted(edit: Callable[[Any], Any]) -> Change:
    return lambda run, rng: forge.values(run / CLASSIFIER, edit)


def _script(run: Path, rng: Generator) -> None:
    for name in ("data.json", "metrics.csv"):
        path = run / name
        path.write_text(
            path.read_text().replace("Oslo", "<script>steal()</script>").replace("loss", "<script>steal()</script>")
        )


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return folders of all kinds in turn: hostile ones first, each once, and damaged ones for ever."""
    hostile = [*payloads(), *strangers(), *forged()]
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
        # A hand that computes checksums may choose how later data is read; finite numbers are all that is promised.
        return _case(number, Bad(*retype(file), exact=file != "data.json"), verb, seed)
    return _case(number, Bad(*damage(file, flip if turn % 2 else BYTES[turn // 2 % len(BYTES)])), verb, seed)


def _case(number: int, bad: Bad, verb: str, seed: int) -> Case:
    call, writes, right = VERBS[verb]

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")
        shutil.copytree(reference / ("voters" if verb == "predict" else "people"), "mine")
        (Path("mine") / "evaluation.json").unlink(missing_ok=True)
        config = Path("mine/config.yaml")
        config.write_text(config.read_text().replace(str(reference), str(Path.cwd())))
        bad.change(Path("mine"), rng)

    check = right if bad.exact else FINITE.get(verb, finished)
    return Case("runs", number, f"{verb}: {bad.label}", seed, call, make, bad.expect, check, writes)


def _finite_embedding(reference: Path) -> str | None:
    return None if np.isfinite(np.load("out.npy")).all() else "the embedding is not finite"


FINITE: dict[str, Check] = {
    "embed": _finite_embedding,
    "predict": sound_predictions("out.csv"),
    "resume": lambda reference: finite_weights(Path("mine")),
    "report": lambda reference: _harmless_page(),
}
