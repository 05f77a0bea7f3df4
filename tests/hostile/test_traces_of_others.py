"""What others leave in a run's place: pipes, half a checkpoint, states of another machine, records without an end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pinoise.errors import UserError
from pinoise.files import read_json, write_json, write_text
from pinoise.modes import Randomness
from pinoise.paper.background import read_masks
from pinoise.training import build as build_module
from pinoise.training import run as run_module
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings, read_yaml
from pinoise.training.folder import config_text
from pinoise.training.run import run_training

CPU = torch.device("cpu")
pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")


@pipes
@pytest.mark.parametrize(
    "read",
    [read_yaml, lambda path: read_masks(path.rename(path.with_suffix(".npy")), rows=1, size=(1, 1))],
    ids=["configuration", "masks"],
)
def test_a_pipe_is_never_waited_for(read: Callable[[Path], Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="it is a pipe"):
        read(tmp_path / "pipe")


def test_half_a_first_checkpoint_does_not_count_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse_settings({"data": {"source": "wine"}, "training": {"epochs": 1, "device": "cpu"}})
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    write_text(tmp_path / "run/config.yaml", config_text(settings))
    (tmp_path / "run/checkpoints/partial.ckpt").write_bytes(b"half")
    asked = []
    build = build_module.seeded_model

    def noticed(*arguments: Any, **options: Any) -> Any:
        asked.append(options["pretrained"])
        return build(*arguments, **options)

    monkeypatch.setattr(run_module, "seeded_model", noticed)
    run_training(tmp_path / "run", settings, reporter=Quiet())
    assert asked == [True]


def test_a_run_that_lost_its_record_gets_it_again(tmp_path: Path) -> None:
    values: dict[str, Any] = {"data": {"source": "wine"}, "training": {"epochs": 1, "device": "cpu"}}
    run_training(tmp_path / "run", parse_settings(values), reporter=Quiet())
    before = (tmp_path / "run/data.json").read_bytes()
    (tmp_path / "run/data.json").unlink()
    values["training"]["epochs"] = 2
    run_training(tmp_path / "run", parse_settings(values), reporter=Quiet())
    assert (tmp_path / "run/data.json").read_bytes() == before


def test_a_record_nested_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(UserError, match="damaged"):
        read_json(tmp_path / "a")


def test_a_name_that_is_not_utf8_is_written_as_an_escape(tmp_path: Path) -> None:
    write_json(tmp_path / "a", {"name": os.fsdecode(b"\xff.csv")})
    assert "udcff" in (tmp_path / "a").read_text(encoding="utf-8")


@pytest.mark.parametrize("extra", [16, 5056])
def test_the_random_state_of_another_device_restores_that_of_the_cpu(extra: int) -> None:
    source = Randomness(3)
    state = torch.cat([source.state(CPU), torch.zeros(extra, dtype=torch.uint8)])
    drawn = torch.rand(2, generator=source.on(CPU))
    other = Randomness(9)
    other.restore(state, CPU)
    assert torch.equal(drawn, torch.rand(2, generator=other.on(CPU)))
