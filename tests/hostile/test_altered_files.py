"""Files of runs, damaged or made by a hostile hand, are refused in one sentence or read as they were."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.torch
import torch
from tests.hostile.mutations import BYTES
from torch import Tensor

from pinoise.data.target import read_target
from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.model import load_run
from pinoise.networks import read_stored, read_weights, write_tensors
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.folder import CLASSIFIER_FILE as CLASSIFIER
from pinoise.training.run import run_training


def is_sentence(error: UserError) -> bool:
    return "\n" not in str(error) and str(error).endswith(".")


def damaged(content: bytes, *, cases: int) -> Iterator[bytes]:
    """Yield content with a flipped bit, cut short, with bytes put in, or with a stretch overwritten."""
    rng = np.random.default_rng(0)
    yield from (BYTES[case % len(BYTES)](content, rng) for case in range(cases))


def test_published_weights_that_are_not_finite_are_refused_by_name(tmp_path: Path) -> None:
    broken = {"conv1.weight": torch.ones(3), "fc.bias": torch.tensor([1.0, torch.nan])}
    torch.save(broken, tmp_path / "w.pth")
    safetensors.torch.save_file(broken, tmp_path / "w.safetensors")
    for name in ("w.pth", "w.safetensors"):
        with pytest.raises(UserError, match=r"holds nan or infinite numbers in 'fc\.bias'"):
            read_weights(tmp_path / name)


INSTEAD: dict[str, Callable[[Path], object]] = {
    "an endless header": lambda path: path.write_bytes(struct.pack("<Q", 2**62)),
    "a header of deep lists": lambda path: path.write_bytes(struct.pack("<Q", 100_000) + b"[" * 100_000),
    "deep values": lambda path: path.write_bytes(with_header({"__metadata__": {"pinoise": "[" * 100_000}})),
    "an endless tensor": lambda path: path.write_bytes(
        with_header({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
    ),
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to an endless device": lambda path: path.symlink_to("/dev/zero"),
}


def with_header(values: Any) -> bytes:
    text = json.dumps(values).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on a table, with a classifier."""
    folder = tmp_path_factory.mktemp("runs")
    lines = ["age,town,class", *(f"{i % 7},{'Oslo' if i % 3 else 'Rome'},{i % 2}" for i in range(40))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    values = {
        "data": {"source": str(folder / "people.csv"), "label": "class"},
        "encoder": {"hidden": 4, "out_features": 2},
        "training": {"epochs": 3, "batch_size": 16, "device": "cpu", "information_draws": 0},
    }
    run_training(folder / "run", parse_settings(values), reporter=Quiet())
    load_run(folder / "run").fit_classifier(read_target(str(folder / "people.csv"), "class"))
    return folder / "run"


def use(run: Path) -> npt.NDArray[Any] | None:
    """Return the embedding of a run's own table, or None if it is refused."""
    try:
        found = load_run(run)
        source = str(run.parent / "people.csv")
        return embed(found.embedding, found.rows(found.read(source).train.x, where=source))
    except UserError as error:
        return None if is_sentence(error) else pytest.fail(str(error))


def copied(path: Path) -> tuple[dict[str, Tensor], Any]:
    """Return tensors and header of a file that will change; tensors as they are read lie in the file."""
    tensors, header = read_stored(path)
    return {name: tensor.clone() for name, tensor in tensors.items()}, header


@pytest.fixture
def kept(run: Path) -> Iterator[Path]:
    """The run, whose files are as they were when the test has ended."""
    before = {path: path.read_bytes() for path in run.glob("*.safetensors")}
    yield run
    for path, content in before.items():
        path.write_bytes(content)


WEIGHTS = ("encoder.safetensors", "embedding.safetensors", "noise.safetensors", "standardizer.safetensors")


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_a_run_that_were_damaged_are_refused(kept: Path, name: str) -> None:
    expected, path = use(kept), kept / name
    assert expected is not None
    tensors, _ = copied(path)
    for content in damaged(path.read_bytes(), cases=40):
        path.write_bytes(content)
        if (found := use(kept)) is not None:
            np.testing.assert_array_equal(found, expected)
    for tensor in (name for name in tensors if tensors[name].is_floating_point()):
        write_tensors(path, {**tensors, tensor: tensors[tensor] * torch.nan})
        with pytest.raises(UserError, match=tensor.replace(".", r"\.")):
            load_run(kept)


@pytest.mark.parametrize("what", INSTEAD)
def test_what_is_no_file_of_weights_is_refused_and_never_waited_for(kept: Path, what: str) -> None:
    path = kept / "noise.safetensors"
    path.unlink()
    INSTEAD[what](path)
    try:
        assert use(kept) is None
    finally:
        path.rmdir() if path.is_dir() else path.unlink()


def predicted(run: Path) -> npt.NDArray[Any] | None:
    """Return the probabilities of a run's own table, or None if they are refused."""
    try:
        found = load_run(run)
        source = str(run.parent / "people.csv")
        return found.predict(found.read(source).train.x)
    except UserError as error:
        return None if is_sentence(error) else pytest.fail(str(error))


@pytest.mark.usefixtures("few_trees")
def test_a_classifier_that_was_damaged_is_refused(kept: Path) -> None:
    expected, path = predicted(kept), kept / CLASSIFIER
    assert expected is not None
    for content in damaged(path.read_bytes(), cases=60):
        path.write_bytes(content)
        if (found := predicted(kept)) is not None:
            np.testing.assert_array_equal(found, expected)


def test_a_classifier_of_other_weights_is_refused_until_it_is_fitted_again(kept: Path) -> None:
    path = kept / "embedding.safetensors"
    write_tensors(path, {**copied(path)[0], "factor": torch.tensor(7.0)})
    assert use(kept) is not None
    with pytest.raises(UserError, match=r"was fitted on other weights than the run now has: fit it again"):
        _ = load_run(kept).classifier
