from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.training.files import read_weights


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(2, 3), "b.c": torch.tensor([1, 2])}
    torch.save(tensors, tmp_path / "w.pth")
    safetensors.torch.save_file(tensors, tmp_path / "w.safetensors")
    for name in ("w.pth", "w.safetensors"):
        found = read_weights(tmp_path / name)
        assert found.keys() == tensors.keys()
        assert all(torch.equal(found[key], value) for key, value in tensors.items())


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
            assert "w.pth holds" in str(error)  # noqa: PT017
        else:
            assert all(isinstance(value, Tensor) for value in found.values())


def test_code_in_a_file_of_weights_is_not_run(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2), tmp_path / "model.pth")  # the module itself, whose class would have to be called
    with pytest.raises(UserError, match=r"model\.pth holds no weights"):
        read_weights(tmp_path / "model.pth")
