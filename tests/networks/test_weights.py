from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.networks import read_tensors, read_weights, write_tensors


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
def test_weights_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    tensors = OrderedDict({"a": torch.randn(2, 3), "b.c": torch.tensor([1, 2])})
    save = torch.save if name == "w.pth" else safetensors.torch.save_file
    save(tensors, tmp_path / name)
    found = read_weights(tmp_path / name)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[key], value) for key, value in tensors.items())


def test_our_own_tensors_are_weights_that_others_can_read(tmp_path: Path) -> None:
    network = nn.Linear(3, 2)
    write_tensors(tmp_path / "w.safetensors", network.state_dict(), metadata={"by": "pinoise"})
    for read in (read_tensors, read_weights, safetensors.torch.load_file):
        found = read(tmp_path / "w.safetensors")
        assert found.keys() == network.state_dict().keys()
        assert all(torch.equal(found[name], value) for name, value in network.state_dict().items())


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("seed", range(6))
def test_no_damage_to_weights_escapes_as_anything_but_a_sentence(tmp_path: Path, seed: int) -> None:
    torch.save({"a": torch.ones(3)}, tmp_path / "w.pth", _use_new_zipfile_serialization=bool(seed % 2))
    whole = (tmp_path / "w.pth").read_bytes()
    rng = np.random.default_rng(seed)
    for _ in range(40):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 4):
            damaged[place] = rng.integers(0, 256)
        (tmp_path / "w.pth").write_bytes(bytes(damaged[: rng.integers(1, len(whole) + 1)]))
        try:
            found = read_weights(tmp_path / "w.pth")
        except UserError as error:
            assert "w.pth is damaged or holds no weights" in str(error) or "w.pth holds" in str(error)  # noqa: PT017
        else:
            assert all(isinstance(value, Tensor) for value in found.values())


@pytest.mark.parametrize(
    ("name", "content"),
    [("w.pth", b""), ("w.pth", b"<html>not found</html>"), ("w.pth", b"PK\x03\x04 cut off"), ("w.safetensors", b"no")],
)
def test_a_file_of_something_else_is_told_what_is_wanted(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"{name} is damaged or holds no weights: give a checkpoint\."):
        read_weights(tmp_path / name, wanted="a checkpoint")


@pytest.mark.parametrize(
    ("value", "kind"),
    [([torch.zeros(2)], "list"), ({"state_dict": {}, "epoch": 3}, "dict"), ({0: torch.ones(1)}, "dict")],
)
def test_what_is_no_state_dict_is_named(tmp_path: Path, value: Any, kind: str) -> None:
    torch.save(value, tmp_path / "w.pth")
    with pytest.raises(
        UserError, match=rf"w\.pth holds {kind}, not a plain mapping of names to tensors: give a state dict"
    ):
        read_weights(tmp_path / "w.pth")


def test_a_path_without_a_file_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.pth does not exist: give a state dict"):
        read_weights(tmp_path / "gone.pth")
    with pytest.raises(UserError, match="is a folder: give a state dict"):
        read_weights(tmp_path)


class Trap:
    """What would run code if a file of weights were unpickled without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_code_in_a_file_of_weights_is_not_run(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "model.pth")  # the module itself, whose class would have to be called
    torch.save({"a": Trap(tmp_path / "trapped")}, tmp_path / "trap.pth")
    for name in ("model", "trap"):
        with pytest.raises(UserError, match=rf"{name}\.pth is damaged or holds no weights"):
            read_weights(tmp_path / f"{name}.pth")
    assert not (tmp_path / "trapped").exists()
