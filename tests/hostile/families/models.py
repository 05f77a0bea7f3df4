"""Model files of a hostile hand, read by ``PiNDA.load``."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.hostile import forge
from tests.hostile.case import PAYLOAD, Case, Expect, Generator, Wrong
from tests.hostile.families.data import Bomb
from tests.hostile.families.runs import filled, rewritten
from tests.hostile.mutations import BYTES, flip, mutate_value, pick
from tests.hostile.reference import numbers

from pinoise.training.automatic import NOISE_KINDS as KNOWN

FILE = Path("model.safetensors")
Change = Callable[[Generator], object]


def load() -> None:
    """Load the model; if it loads, its embedding must be that of the sound one."""
    import sys

    from pinoise import PiNDA

    sys.path.append(str(Path.cwd()))  # as in an interactive session
    found = PiNDA.load(FILE).transform(numbers())
    if not np.array_equal(found, np.load("wanted.npy")):
        raise Wrong("the embedding differs from that of the sound model")


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header and the tensors of a safetensors file."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write(path: Path, header: Any, body: bytes, *, length: int | None = None) -> None:
    """Write a safetensors file, with a forged length if one is given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + body)


def edit_values(change: Callable[[Any, Generator], Any]) -> Change:
    """Return the change of the values that pinoise keeps in the header, with the checksum of the change."""

    return lambda rng: forge.values(FILE, lambda held: change(held, rng))


def edit_header(change: Callable[[Any, Generator], Any]) -> Change:
    """Return the change of the header of safetensors."""

    def make(rng: Generator) -> None:
        header, body = read(FILE)
        write(FILE, change(header, rng), body)

    return make


def damage(mutation: Any) -> Change:
    """Return the change of bytes of the whole file."""
    return lambda rng: FILE.write_bytes(mutation(FILE.read_bytes(), rng))


def instead(make: Callable[[], object]) -> Change:
    """Return the change that puts something else in the place of the file."""

    def change(rng: Generator) -> None:
        FILE.unlink()
        make()

    return change


def damage_tensors(rng: Generator) -> None:
    """Flip a bit of the tensors, where the format itself notices nothing."""
    header, body = read(FILE)
    write(FILE, header, flip(body, rng))


def param(name: str, value: Any) -> Change:
    """Return the change of one parameter of the estimator."""

    def change(held: Any, rng: Generator) -> Any:
        (Path("evil.py")).write_text(f"{PAYLOAD}\ndef f(*a, **k): {PAYLOAD}\n")
        return {**held, "params": {**held.get("params", {}), name: value}}

    return edit_values(change)


def _tried(noise: str, trials: Any) -> Change:
    """Return the change of a model into one of automatic noise with these trials."""

    def change(held: Any, rng: Generator) -> Any:
        Path("evil.py").write_text(f"{PAYLOAD}\ndef f(*a, **k): {PAYLOAD}\n")
        return {**held, "trials": trials, "params": {**held["params"], "noise": noise}}

    return edit_values(change)


def saved_with_payload(rng: Generator) -> None:
    """Let a sound estimator name a class of its user, and put a payload in that module's place."""
    import importlib
    import sys

    from pinoise import PiNDA

    source = (
        "import torch\nclass Net(torch.nn.Linear):\n    def __init__(self, shape):\n        super().__init__(3, 4)\n"
    )
    Path("own_part.py").write_text(source)
    sys.path.insert(0, str(Path.cwd()))
    try:
        net = importlib.import_module("own_part").Net
        PiNDA(encoder=net, epochs=1, batch_size=8, random_state=0, device="cpu").fit(numbers()).save(FILE)
    finally:
        sys.path.pop(0)
    del sys.modules["own_part"]
    Path("own_part.py").write_text(f"{PAYLOAD}\n{source}")
    shutil.rmtree("__pycache__", ignore_errors=True)


def _tensor(edit: str, value: Any) -> Change:
    """Return the change of one entry of one tensor in the header."""

    def change(header: Any, rng: Generator) -> Any:
        names = sorted(name for name in header if name != "__metadata__")
        name = names[int(rng.integers(len(names)))]
        return {**header, name: {**header[name], edit: value}}

    return edit_header(change)


def _forged_tensors(label: str, edit: Any) -> tuple[str, Change, Expect]:
    name, change = rewritten(FILE.name, label, edit)
    return name, lambda rng: change(Path(), rng), "sentence"


def special() -> list[tuple[str, Change, Expect]]:
    """Return forged files and what is expected of them."""
    import torch

    found: list[tuple[str, Change, Expect]] = [
        ("an own part that became a payload", saved_with_payload, "sentence"),
        ("no values of pinoise", edit_header(lambda header, rng: {**header, "__metadata__": {}}), "sentence"),
        ("no metadata", edit_header(lambda h, rng: {k: v for k, v in h.items() if k[0] != "_"}), "sentence"),
        ("values that are no JSON", edit_header(lambda h, rng: {**h, "__metadata__": {"pinoise": "{"}}), "sentence"),
        ("values that are a list", edit_values(lambda held, rng: [1]), "sentence"),
        ("values that are nothing", edit_values(lambda held, rng: None), "sentence"),
        ("no values", edit_values(lambda held, rng: {}), "sentence"),
        ("format 10^30", edit_values(lambda held, rng: {**held, "format": 10**30}), "sentence"),
        ("format of text", edit_values(lambda held, rng: {**held, "format": "x"}), "sentence"),
        ("format of nothing", edit_values(lambda held, rng: {**held, "format": None}), "sentence"),
        ("a parameter too many", param("unheard_of", 1), "sentence"),
        ("deep values", edit_header(lambda h, rng: {**h, "__metadata__": {"pinoise": "[" * 100_000}}), "sentence"),
        ("an endless header", lambda rng: write(FILE, b"{}", b"", length=2**62), "sentence"),
        ("a header of deep lists", lambda rng: write(FILE, b"[" * 100_000, b""), "sentence"),
        ("a header of text", lambda rng: write(FILE, b"hello", b""), "sentence"),
        ("a pickle", lambda rng: FILE.write_bytes(pickle.dumps(Bomb())), "sentence"),
        ("nothing", lambda rng: FILE.unlink(), "sentence"),
        ("a folder", instead(lambda: FILE.mkdir()), "sentence"),
        ("a FIFO", instead(lambda: os.mkfifo(FILE)), "sentence"),
        ("a link to /dev/zero", instead(lambda: FILE.symlink_to("/dev/zero")), "sentence"),
        ("a type unknown", _tensor("dtype", "F128"), "sentence"),
        ("another type", _tensor("dtype", "I32"), "either"),
        ("another shape", _tensor("shape", [2**40]), "sentence"),
        ("a negative shape", _tensor("shape", [-1]), "sentence"),
        ("places beyond the end", _tensor("data_offsets", [0, 2**60]), "sentence"),
        ("places in reverse", _tensor("data_offsets", [8, 0]), "sentence"),
        _forged_tensors("NaN", filled(float("nan"))),
        _forged_tensors("infinity", filled(float("inf"))),
        _forged_tensors("one axis more", lambda held: {name: torch.stack([t, t]) for name, t in held.items()}),
        _forged_tensors("integers", lambda held: {name: t.to(torch.int32) for name, t in held.items()}),
        _forged_tensors("no tensors", lambda held: {}),
    ]
    for label, noise, trials in (
        ("no trials of an automatic noise", "auto", {}),
        ("trials of a noise that was not chosen", "pi", dict.fromkeys(KNOWN, 1.0)),
        ("a trial of an unknown noise", "auto", {**dict.fromkeys(KNOWN, 1.0), "evil:f": 9.0}),
        ("a trial too few", "auto", dict.fromkeys(list(KNOWN)[1:], 1.0)),
        ("trials of NaN", "auto", dict.fromkeys(KNOWN, float("nan"))),
        ("trials of text", "auto", dict.fromkeys(KNOWN, "x")),
        ("trials of nothing", "auto", None),
        ("trials that are a list", "auto", list(KNOWN)),
        ("a noise of a payload", "evil:f", {}),
    ):
        found.append((label, _tried(noise, trials), "sentence"))
    found.append(
        ("trials that chose another noise", _tried("auto", {**dict.fromkeys(KNOWN, 1.0), "both": 2}), "either")
    )
    for name, value in (("covariance", "evil:f"), ("covariance", 1), ("amplitude", -1), ("amplitude", "x")):
        found.append((f"{name} is {value}", param(name, value), "sentence"))
    for name in ("encoder", "method", "objective", "generator"):
        for path in ("evil:f", "os:system", "builtins:exec", "pickle:loads"):
            found.append((f"{name} is {path}", param(name, path), "sentence"))
        found.append((f"{name} is a section with evil:f", param(name, {"name": "evil:f"}), "sentence"))
    found.append(("an augmentation evil:f", param("augmentations", ["evil:f"]), "sentence"))
    return found


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return forged files, then random damage."""
    made = [_case(number, label, change, expect, seed) for number, (label, change, expect) in enumerate(_ordered())]
    random: list[tuple[str, Change]] = [
        ("another value", edit_values(mutate_value)),
        ("a flipped bit of a tensor", damage_tensors),
        ("another value in the header", edit_header(mutate_value)),
        ("a flipped bit", damage(flip)),
        ("another parameter", edit_values(_param_mutated)),
        *((f"{mutation.__name__} of the file", damage(mutation)) for mutation in BYTES[1:6]),
    ]
    while len(made) < size:
        label, change = random[len(made) % len(random)]
        made.append(_case(len(made), label, change, "either", seed))
    return tuple(made)


def _ordered() -> list[tuple[str, Change, Expect]]:
    found = special()
    return [*found[::2], *found[1::2]]


def _param_mutated(held: Any, rng: Generator) -> Any:
    if rng.random() < 0.5:
        return {**held, "params": mutate_value(held["params"], rng)}
    key = pick([key for key in held if key != "params"], rng)
    return {**held, **mutate_value({key: held[key]}, rng)}


def _case(number: int, label: str, change: Change, expect: Expect, seed: int) -> Case:
    def make(reference: Path, rng: Generator) -> None:
        shutil.copy(reference / FILE, FILE)
        shutil.copy(reference / "model.embedding.npy", "wanted.npy")
        change(rng)

    return Case("models", number, label, seed, load, make, expect)
