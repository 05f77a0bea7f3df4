from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric

from pinoise.errors import UserError
from pinoise.training.checkpoint import damage, find_checkpoint, save_checkpoint


def save(folder: Path, value: int) -> None:
    save_checkpoint(Fabric(accelerator="cpu", devices=1), folder, {"weights": torch.full((1000,), value)})


def stored(path: Path) -> int:
    return int(torch.load(path, weights_only=True)["weights"][0])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_the_newest_checkpoint_is_found_and_the_one_before_is_kept(tmp_path: Path) -> None:
    for value in (1, 2, 3):
        save(tmp_path, value)
    path, complaint = find_checkpoint(tmp_path)
    assert path is not None
    assert complaint is None
    assert stored(path) == 3
    assert stored(tmp_path / "previous.ckpt") == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["last.ckpt", "previous.ckpt"]


def test_a_checkpoint_that_cannot_be_written_keeps_the_earlier_one_and_leaves_no_half_file(tmp_path: Path) -> None:
    save(tmp_path, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))  # as a disk without room
    try:
        with pytest.raises(
            UserError, match=r"a checkpoint cannot be written to .*: free some space and continue with --resume"
        ):
            save(tmp_path, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]
    assert stored(tmp_path / "last.ckpt") == 1


def test_no_checkpoint_is_no_error(tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path) == (None, None)


@pytest.mark.parametrize("harm", ["truncate", "flip", "empty", "garbage"])
def test_a_damaged_checkpoint_is_passed_over_for_the_previous_one(tmp_path: Path, harm: str) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    last = tmp_path / "last.ckpt"
    match harm:
        case "truncate":
            last.write_bytes(last.read_bytes()[:-100])
        case "flip":
            flip_a_byte(last)
        case "empty":
            last.write_bytes(b"")
        case "garbage":
            last.write_bytes(b"not a checkpoint")
    path, complaint = find_checkpoint(tmp_path)
    assert path is not None
    assert stored(path) == 1
    assert complaint is not None
    assert "last.ckpt is damaged" in complaint


def test_a_lost_last_checkpoint_leaves_the_previous_one(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    (tmp_path / "last.ckpt").unlink()  # as after a kill between the two renames
    path, _ = find_checkpoint(tmp_path)
    assert path is not None
    assert stored(path) == 1


def test_only_damaged_checkpoints_are_an_error(tmp_path: Path) -> None:
    save(tmp_path, 1)
    flip_a_byte(tmp_path / "last.ckpt")
    with pytest.raises(UserError, match=r"has no intact checkpoint: checkpoint last\.ckpt is damaged"):
        find_checkpoint(tmp_path)


def test_every_flipped_byte_of_the_weights_is_noticed(tmp_path: Path) -> None:
    save(tmp_path, 1)
    path = tmp_path / "last.ckpt"
    sound = path.read_bytes()
    assert damage(path) is None
    start = sound.index(torch.full((4,), 1).numpy().tobytes())  # within the stored weights
    for offset in range(start, start + 4000, 977):
        content = bytearray(sound)
        content[offset] ^= 1
        path.write_bytes(content)
        assert damage(path) is not None, offset
