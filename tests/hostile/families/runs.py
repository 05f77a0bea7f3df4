"""Run folders of a hostile hand: every file of a real run damaged, forged, replaced, or with a path to a payload."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from tests.hostile.case import PAYLOAD, Case, Check, Expect, Generator
from tests.hostile.families.data import Bomb
from tests.hostile.mutations import BYTES, flip, mutate_value
from tests.hostile.oracles import same_array, same_weights

Change = Callable[[Path, Generator], None]  # of a run folder

FILES = (
    *("config.yaml", "data.json", "encoder.safetensors", "noise.safetensors", "standardizer.safetensors"),
    *("checkpoints/last.ckpt", "metrics.csv", "environment.json"),
)
VERBS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Check]] = {
    "embed": (
        ("embed", "mine", "--data", "people.csv", "--out", "out.npy"),
        ("out.npy",),
        same_array("out.npy", "people.embedding.npy"),
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
    """Return the change that replaces a random value of a file of values."""

    def change(run: Path, rng: Generator) -> None:
        text = (run / file).read_text()
        if file.endswith(".json"):
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
    """Return the change that forges tensors, in a file that is well-formed."""

    def change(run: Path, rng: Generator) -> None:
        import safetensors
        import safetensors.torch

        path = run / file
        if file.endswith(".ckpt"):
            torch.save(edit(torch.load(path, weights_only=True)), path)
            return
        with safetensors.safe_open(path, framework="pt") as opened:
            metadata = opened.metadata()
        tensors = {name: tensor.clone() for name, tensor in safetensors.torch.load_file(path).items()}
        safetensors.torch.save_file(edit(tensors), path, metadata=metadata)

    return f"{file} with {label}", change


def filled(value: float) -> Callable[[Any], Any]:
    def edit(tensors: Any) -> Any:
        return {
            name: torch.full_like(tensor, value) if torch.is_floating_point(tensor) else tensor
            for name, tensor in tensors.items()
        }

    return edit


def _grown(tensors: Any) -> Any:
    return {name: torch.stack([tensor, tensor]) for name, tensor in tensors.items()}


def _cast(tensors: Any) -> Any:
    return {name: tensor.to(torch.int32) for name, tensor in tensors.items()}


def _pickled(value: Any) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(pickle.dumps(value))


def _saved(value: Any) -> Callable[[Path], object]:
    return lambda path: torch.save(value, path)


def _array(path: Path) -> None:
    with path.open("wb") as stream:
        np.save(stream, np.arange(3))


def special() -> list[tuple[str, Change, str | None, Expect]]:
    """Return forged folders, the verb that each is for or None for all in turn, and what is expected."""
    found: list[tuple[str, Change, str | None, Expect]] = []
    payload: Expect = "sentence"
    for path in (
        "evil:f",
        "mine.evil:f",
        "mine.evil:F",
        "os:system",
        "builtins:exec",
        "subprocess:run",
        "pickle:loads",
    ):
        for section in (("encoder", "name"), ("method",), ("objective",), ("noise", "generator")):
            found.append((*pointing(section, path), None, payload))
    for section, value in (
        (("views", "noise"), "mine.evil:f"),
        (("views", "augmentations"), ["mine.evil:f"]),
        (("views", "augmentations"), [{"name": "evil:f", "x": 1}]),
        (("encoder",), {"name": "module", "factory": "mine.evil:f"}),
        (("noise",), {"factory": "mine.evil:f"}),
    ):
        found.append((*pointing(section, value), None, payload))
    for file in FILES:
        must: Expect = "sentence" if file.endswith(".safetensors") or file in ("config.yaml", "data.json") else "either"
        found.append((*replaced(file, "a folder", Path.mkdir), None, "either"))
        found.append((*replaced(file, "a FIFO", os.mkfifo), None, "either"))
        found.append((*replaced(file, "nothing", lambda path: None), None, "either"))
        found.append((*replaced(file, "a link to itself", lambda path: path.symlink_to(path.name)), None, "either"))
        found.append((*replaced(file, "a pickle", _pickled(Bomb())), "embed", must))
        found.append(
            (*replaced(file, "a link to /dev/zero", lambda path: path.symlink_to("/dev/zero")), None, "either")
        )
    for file in FILES[2:5]:
        for label, edit in (
            ("NaN", filled(float("nan"))),
            ("infinity", filled(float("inf"))),
            ("zeros", filled(0.0)),
            ("one axis more", _grown),
            ("integers", _cast),
            ("no tensors", lambda tensors: {}),
            ("a tensor more", lambda tensors: {**tensors, "more": torch.zeros(3)}),
        ):
            found.append((*rewritten(file, label, edit), "embed", "either"))
    last = "checkpoints/last.ckpt"
    others: dict[str, Any] = {
        "a list": [1, 2],
        "a tensor": torch.zeros(3),
        "nothing": None,
        "other keys": {"a": 1},
        "a model of text": {"model": "x"},
    }
    for label, other in others.items():
        found.append((*replaced(last, f"torch.save of {label}", _saved(other)), "resume", "either"))
    found.append((*replaced(last, "torch.save of a payload", _saved(Bomb())), "resume", "either"))
    found.append((*replaced(last, "an array", _array), "resume", "either"))
    for label, edit in (
        ("a key less", lambda held: {key: held[key] for key in list(held)[1:]}),
        ("text for numbers", lambda held: {key: "x" if isinstance(item, int) else item for key, item in held.items()}),
        ("no model", lambda held: {**held, "model": {}}),
        ("a step of 10^18", lambda held: {key: 10**18 if key == "step" else item for key, item in held.items()}),
    ):
        found.append((*rewritten(last, label, edit), "resume", "either"))
    return found


def _script(run: Path, rng: Generator) -> None:
    for name in ("data.json", "metrics.csv"):
        path = run / name
        path.write_text(
            path.read_text().replace("Oslo", "<script>steal()</script>").replace("loss", "<script>steal()</script>")
        )


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return forged folders and damaged ones in turn."""
    forged = [*special(), ("a script in names", _script, "report", "either")]
    made: list[Case] = []
    order = np.random.default_rng(5).permutation(len(forged))
    verbs = tuple(VERBS)
    for number in range(size):
        if number % 2 == 0 and number // 2 < len(forged):
            label, change, only, expect = forged[order[number // 2]]
            verb = only or verbs[number // 2 % 4]
            if verb == "report" and expect == "either" and "metrics" not in label:
                verb = "embed"
        else:
            turn = number // 2
            file = FILES[turn % len(FILES)]
            verb = verbs[turn % len(verbs)] if turn % 3 else ("resume" if "ckpt" in file else "embed")
            expect = "either"
            if turn % 4 == 1 and file.endswith((".json", ".yaml")):
                label, change = retype(file)
            else:
                label, change = damage(file, flip if turn % 2 else BYTES[turn // 2 % len(BYTES)])
        made.append(_case(number, label, change, verb, expect, seed))
    return tuple(made)


def _case(number: int, label: str, change: Change, verb: str, expect: Expect, seed: int) -> Case:
    call, writes, right = VERBS[verb]

    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / "people.csv", "people.csv")
        shutil.copytree(reference / "people", "mine")
        (Path("mine") / "evaluation.json").unlink(missing_ok=True)
        config = Path("mine/config.yaml")
        config.write_text(config.read_text().replace(str(reference), str(Path.cwd())))
        change(Path("mine"), rng)

    return Case("runs", number, f"{verb}: {label}", seed, call, make, expect, right, writes)
