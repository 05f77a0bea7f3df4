"""Every setting against every kind of hostile value, made from the sections' own signatures."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hostile.families.words import PARTS, options, settings

from pinoise import PiNDA
from pinoise.choices import VIEW
from pinoise.errors import UserError, brief
from pinoise.experiments.compare import compare
from pinoise.training.config import dump_yaml, override, parse_assignment, parse_settings, read_yaml

CYCLE: dict[str, Any] = {}
CYCLE["inner"] = CYCLE
HOSTILE: dict[str, Any] = {
    "true": True,
    "false": False,
    "numpy's true": np.bool_(True),
    "text of a number": "5",
    "fraction": 3.7,
    "whole float": 3.0,
    "nan": math.nan,
    "infinity": math.inf,
    "negative": -1,
    "huge": 10**12,
    "beyond 64 bits": 2**64,
    "beyond a float": 10**400,
    "5,000 digits": 10**5000,
    "long text": "x" * 10**6,
    "empty text": "",
    "a NUL": "a\0b",
    "a surrogate": "\ud800",
    "yes": "yes",
    "nothing": None,
    "a list": [1],
    "a mapping": {"a": 1},
    "a cycle": CYCLE,
    "bytes": b"1",
    "an object": object(),
    "complex": 1j,
}


def takes(annotation: Any, wanted: type) -> bool:
    return annotation is wanted or any(takes(inner, wanted) for inner in typing.get_args(annotation))


def is_right(value: Any, annotation: Any) -> bool:
    """Whether a value that was accepted is one that its type names."""
    if isinstance(value, bool):
        return takes(annotation, bool)
    if isinstance(value, int):
        return (takes(annotation, int) and abs(value) < 10**12) or (takes(annotation, float) and abs(value) < 1e308)
    if isinstance(value, float):
        return takes(annotation, float) and math.isfinite(value)
    return True


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except UserError as error:
        return error if "\n" not in str(error) and len(str(error)) < 2500 else str(error)


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_setting_takes_a_value_that_is_not_of_its_type(kind: str) -> None:
    value = HOSTILE[kind]
    plain = value.item() if isinstance(value, np.generic) else value
    for path, annotation in settings():
        nested: dict[str, Any] = override({}, [(path, value)])
        found = outcome(partial(parse_settings, nested))
        assert isinstance(found, UserError) or is_right(plain, annotation), (path, found)
    for section, name, option, annotation in options({**PARTS, "views.augmentations": VIEW}):
        given: Any = {"name": name, option: value}
        nested = override({}, [(section, [given] if section == "views.augmentations" else given)])
        found = outcome(partial(parse_settings, nested))
        assert isinstance(found, UserError) or is_right(plain, annotation), (name, option, found)


BOMB = "{a: &a [x,x,x,x,x,x,x,x,x]" + "".join(
    f", {new}: &{new} [{','.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefghij", "bcdefghijk", strict=True)
)
TEXTS = {
    "alias bomb": BOMB + "}",
    "merge bomb": BOMB.replace("[x,x,x,x,x,x,x,x,x]", "{x: 1}")
    .replace(": &", ": &")
    .replace("[*", "{<<: [*")
    .replace("]", "]}")
    + "}",
    "cycle": "&a [*a]",
    "cycle of mappings": "{a: &x {b: *x}}",
    "depth": "[" * 100_000,
    "depth of keys": "{? " * 100_000,
    "depth of lists": "- " * 100_000,
    "5,000 digits": "9" * 5000,
    "a tag": "!!python/object/apply:os.system [echo]",
    "a bad tag": "!!int x",
    "an empty tag": "!!int ''",
    "a bad truth": "!!bool maybe",
    "two documents": "1\n---\n2",
    "a key twice": "{a: 1, a: 2}",
    "a list as a key": "{[1]: 2}",
    "a million characters": "x" * 1_000_001,
    "a NUL": "\0",
    "a surrogate": "\ud800",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_hostile_yaml_is_refused_in_a_flag_and_in_a_file(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--set got"):
        parse_assignment(f"method={TEXTS[kind]}")
    file = tmp_path / "c.yaml"
    file.write_bytes(f"method: {TEXTS[kind]}".encode(errors="surrogatepass"))
    with pytest.raises(UserError, match=r"c\.yaml is"):
        read_yaml(file)


@pytest.mark.parametrize(
    "text",
    [
        "training: &a\n  epochs: *a\n",
        "method: &a {name: *a}\n",
        "- 1\n",
        "5",
        bytes(range(256)),
        "training: {epochs: 1}".encode("utf-16"),
        "trainig: {epochs: 1}",
        "1: 2",
        "~: 3",
        "training: hello",
        '"\\e[2J": 1',
    ],
    ids=repr,
)
def test_a_configuration_of_anything_else_is_refused(text: str | bytes, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert isinstance(outcome(lambda: parse_settings(read_yaml(tmp_path / "c.yaml"))), UserError)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 0.001), ("010", "010"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), ("-.5", -0.5), ("1_000", 1000)],
)
def test_numbers_are_read_as_people_write_them_and_written_so_that_they_are_read_again(text: str, value: Any) -> None:
    assert parse_assignment(f"a={text}") == ("a", value)
    (tmp := parse_assignment(f"a={dump_yaml(value).splitlines()[0]}"))
    assert tmp == ("a", value)
    assert parse_assignment(f"a={dump_yaml(text).splitlines()[0]}") == ("a", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "=3"],
        ["--set", "training.=3"],
        ["--set", "training.epochs"],
        ["--set", "training.epochs.deep.er=3"],
        ["--set", f"{'a.' * 5000}b=3"],
        ["--set", f"{'a' * 100_000}=3"],
        ["--epochs", "9" * 5000],
        ["--epochs", "3", "--epochs", "x"],
        ["--device", "cpu:banana"],
        ["--device", "cuda:99999"],
        ["--set", "training.devices=1000000000000"],
        ["--set", "method={name: moco, queue: 1000000000000}"],
        ["--data", "\udcff\n\x1b[2J"],
        ["--method", "\udcff:x"],
    ],
)
def test_a_hostile_flag_is_one_sentence(arguments: list[str], tmp_path: Path, pinoise: Callable[..., Any]) -> None:
    data = [] if "--data" in arguments else ["--data", "digits"]
    found = pinoise("train", *data, "--out", tmp_path / "run", *arguments)
    assert len(found.sentence) < 2500
    assert "\x1b" not in found.sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seeds", [True, 0, 10**12, [-1], [2**32], [True], [1.5], ["1"]])
def test_seeds_have_one_range(seeds: Any) -> None:
    with pytest.raises(UserError, match="seed"):
        compare("wine", methods=["fixed"], seeds=seeds)


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 10**5000], ids=brief)
def test_a_random_state_has_the_range_of_a_seed(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"[Ss]eed"):
        PiNDA(random_state=seed).fit(np.zeros((8, 3)))
