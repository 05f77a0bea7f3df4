"""``pinoise cost``: counts and times without training anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SMALL = ["--set", "encoder.hidden=16", "--set", "noise.generator.hidden=16", "--device", "cpu"]


def test_the_table_has_the_base_and_what_noise_adds(pinoise: Callable[..., Any], folder: Path) -> None:
    result = pinoise("cost", "--data", "digits", "--set", "objective=paper", *SMALL)
    assert result.code == 0
    assert "digits: 1,437 rows of 64, batches of 256, 5 steps an epoch, 100 epochs" in result.out
    weights = next(line for line in result.out.splitlines() if line.startswith("trained weights")).split()
    base, added, together = (int(word.replace(",", "")) for word in weights[2:])
    assert base + added == together
    assert added == 65 * 16 + 17 * 16 + 17 * 16 + 17 * 64  # d→16→16, then 16→16→d
    assert "Times are those of a few steps on this machine" in result.out
    assert list(folder.iterdir()) == []


def test_a_configuration_is_counted_without_its_data(
    pinoise: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINOISE_DATA", raising=False)
    (folder / "paper.yaml").write_text(
        "data: {source: stl10}\nencoder: {name: resnet18, stem: cifar}\nobjective: paper\n"
        "noise: {generator: {stem: cifar}}\nviews: {augmentations: [simclr]}\ntraining: {epochs: 1000}\n"
    )
    result = pinoise("cost", "paper.yaml", "--tflops", "20", "--json")
    found = json.loads(result.out)
    assert (found["rows"], found["shape"], found["steps_per_epoch"]) == (5000, [96, 96, 3], 19)
    assert found["base"]["flops_forward"] == pytest.approx(2.57e12, rel=0.01)  # the paper's figure
    step = 2 * found["whole"]["multiply_accumulates_step"] / 20e12
    assert found["whole"]["seconds_per_epoch"] == pytest.approx(19 * step)
    assert found["added"]["memory_bytes"] > 10e9


def test_a_file_of_the_users_is_counted_as_it_would_be_trained(pinoise: Callable[..., Any], people: Path) -> None:
    found = json.loads(pinoise("cost", "--data", str(people), "--label", "group", "--steps", "0", "--json", *SMALL).out)
    assert found["rows"] == 48  # 12 are held out for the test part
    assert found["batch_size"] == 48
    assert found["base"]["seconds_per_step"] is None


def test_what_does_not_fit_is_counted_and_not_timed(pinoise: Callable[..., Any], folder: Path) -> None:
    arguments = ["--set", "encoder={name: resnet50, stem: cifar}", "--set", "views.augmentations=[simclr]"]
    arguments += ["--set", "objective=paper", "--batch-size", "5000", "--device", "cpu"]
    result = pinoise("cost", "--data", "stl10", *arguments)
    assert "note: no step is timed: one needs about" in result.err
    assert "time of an epoch" in result.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "there is nothing to count: name a configuration file, or data with --data"),
        (["absent.yaml"], "absent.yaml cannot be read: No such file or directory"),
        (["--data", "digits", "--steps", "-1"], "Invalid value for '--steps': "),
        (["--data", "digits", "--tflops", "0"], "--tflops is 0.0: it must be a positive number"),
        (["--data", "digits", "--set", "encoder=resnet18"], "encoder 'resnet18' is for images"),
        (["--data", "digits", "--set", "training.epoch=3"], "did you mean 'training.epochs'"),
    ],
)
def test_a_mistake_is_one_sentence(
    pinoise: Callable[..., Any], folder: Path, arguments: list[str], sentence: str
) -> None:
    result = pinoise("cost", *arguments)
    assert result.code == 2
    assert sentence in result.sentence
