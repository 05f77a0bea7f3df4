from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.problems import files_of_at_most
from torch import nn

from pinoise.errors import UserError
from pinoise.modes import Randomness
from pinoise.training.checkpoint import DamagedError, RunIdentity, find_checkpoint, read_checkpoint, save_checkpoint


def make(value: float = 0.0) -> tuple[nn.Module, torch.optim.Adam]:
    """Return a small model whose weights hold one value, and its optimiser after a step."""
    model = nn.Linear(100, 10)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 100)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(value)
    return model, optimizer


def save(folder: Path, value: float, **changes: Any) -> None:
    model, optimizer = make(value)
    state = {
        **RunIdentity()._asdict(),
        **{
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "precision": {},
            "step": 1,
            "seconds": 0.5,
        },
        **{"random": Randomness(0).state(torch.device("cpu"))[None], "loss_sum": torch.zeros(1, 2)},
        "history": [(1, 1, 0.5, {"contrast": 0.5}, 0.5)],
    }
    save_checkpoint(folder, {**state, **changes})


def find(folder: Path) -> tuple[Path | None, str | None]:
    found = find_checkpoint(folder, make()[0], RunIdentity())
    return (None, None) if found is None else (found.path, found.complaint)


def stored(path: Path) -> float:
    return float(torch.load(path, weights_only=True)["model"]["bias"][0])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_the_newest_checkpoint_is_found_and_the_one_before_is_kept(tmp_path: Path) -> None:
    for value in (1, 2, 3):
        save(tmp_path, value)
    path, complaint = find(tmp_path)
    assert path is not None
    assert complaint is None
    assert stored(path) == 3
    assert stored(tmp_path / "previous.ckpt") == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["last.ckpt", "previous.ckpt"]


def test_a_checkpoint_that_cannot_be_written_keeps_the_earlier_one_and_leaves_no_half_file(tmp_path: Path) -> None:
    save(tmp_path, 1)
    sentence = r"a checkpoint cannot be written to .*: free some space and continue with --resume"
    with files_of_at_most(2000), pytest.raises(UserError, match=sentence):
        save(tmp_path, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]
    assert stored(tmp_path / "last.ckpt") == 1


def test_no_checkpoint_is_no_error(tmp_path: Path) -> None:
    assert find(tmp_path) == (None, None)


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
    path, complaint = find(tmp_path)
    assert path is not None
    assert stored(path) == 1
    assert complaint is not None
    assert "last.ckpt is damaged" in complaint


def test_a_lost_last_checkpoint_leaves_the_previous_one(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    (tmp_path / "last.ckpt").unlink()  # as after a kill between the two renames
    path, _ = find(tmp_path)
    assert path is not None
    assert stored(path) == 1


def test_only_damaged_checkpoints_are_an_error(tmp_path: Path) -> None:
    save(tmp_path, 1)
    flip_a_byte(tmp_path / "last.ckpt")
    with pytest.raises(UserError, match=r"has no checkpoint to go on from: checkpoint last\.ckpt is damaged"):
        find(tmp_path)


def content_of(path: Path) -> Any:
    """Return what a checkpoint holds as values that can be compared."""

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return str(value.dtype), value.tolist()
        return {key: plain(inner) for key, inner in value.items()} if isinstance(value, dict) else repr(value)

    return plain(read_checkpoint(path)._asdict())


def test_every_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    save(tmp_path, 1)
    path = tmp_path / "last.ckpt"
    sound = path.read_bytes()
    expected = content_of(path)
    noticed = 0
    for offset in {*range(0, len(sound), 97), *range(len(sound) - 90, len(sound))}:
        content = bytearray(sound)
        content[offset] ^= 1 << offset % 8
        path.write_bytes(content)
        try:
            assert content_of(path) == expected
        except DamagedError:
            noticed += 1
    assert noticed > 100


@pytest.mark.parametrize(
    "changes",
    [
        {"model": nn.Linear(3, 3).state_dict()},
        {"model": {"weight": torch.zeros(10, 100)}},
        {"data": "another"},
        {"extra": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_checkpoint_that_does_not_fit_is_passed_over_too(tmp_path: Path, changes: dict[str, Any]) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2, **changes)
    path, complaint = find(tmp_path)
    assert path == tmp_path / "previous.ckpt"
    assert complaint is not None
    assert complaint.startswith("checkpoint last.ckpt ")
    assert complaint.endswith(", so it was skipped: previous.ckpt is used.")
    assert complaint.count("\n") == 0


@pytest.mark.parametrize(
    "content", [{"state_dict": {}, "pytorch-lightning_version": "2.0"}, torch.zeros(3), [1], {}], ids=str
)
def test_any_file_of_torch_save_is_a_damaged_checkpoint(tmp_path: Path, content: Any) -> None:
    save(tmp_path, 1)
    (tmp_path / "last.ckpt").rename(tmp_path / "previous.ckpt")
    torch.save(content, tmp_path / "last.ckpt")
    assert find(tmp_path)[0] == tmp_path / "previous.ckpt"


def test_a_checkpoint_of_other_settings_is_named_if_there_is_no_other(tmp_path: Path) -> None:
    save(tmp_path, 1, settings='{"seed": 3}')
    with pytest.raises(
        UserError, match=r"last\.ckpt is of another run \(seed is absent in config\.yaml and 3 in it\)\. Restore"
    ):
        find(tmp_path)
    save(tmp_path, 2)
    assert find(tmp_path) == (tmp_path / "last.ckpt", None)
    save(tmp_path, 3, settings='{"seed": 3}')
    path, complaint = find(tmp_path)
    assert path == tmp_path / "previous.ckpt"
    assert "last.ckpt is of another run (seed is absent in config.yaml and 3 in it)" in str(complaint)
