"""Every mistake gets one clear sentence and exit code 2, and leaves no folder behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Command = Callable[..., Any]
MANY = "".join(f"{i * 1.5},{i * i % 11},{i % 2}\n" for i in range(30))
ROWS = "".join(f"{i % 7},{i * i % 11},{i % 2}\n" for i in range(20))


def array(value: float) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        x = np.random.default_rng(0).normal(size=(9, 3))
        x[4, 1] = value
        np.save(path, x)

    return write


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.npy", array(np.inf), r"x\.npy has .*inf.* in row 4 \(counted from 0\), feature 1"),
        ("x.csv", f"a,b,c\n{ROWS}inf,1,1\n", r"column 'a', data row 21 holds inf, which is too large"),
        ("x.csv", f"a,b,c\n{MANY}hello,1,1\n", r"column 'a' holds numbers, but data row 31 holds 'hello'"),
        ("x.csv", "a,b\n" + 9 * ",NA\n", r"x\.csv has no feature column left.*without any value: a, b"),
        ("x.csv", "a,b\n", r"x\.csv has a header but no rows"),
        ("x.csv", "a,b\n1,2\n1,2,3\n", r"data row 2 has 3 cells where the first line has 2"),
        ("x.npz", b"PK\x03\x04 and then nothing", r"x\.npz is damaged"),
        ("x.docx", "words", r"x\.docx"),
    ],
)
def test_a_bad_file_is_one_sentence_and_blocks_nothing(
    pinoise: Command,
    folder: Path,
    tiny: list[str],
    name: str,
    content: str | bytes | Callable[[Path], None],
    sentence: str,
) -> None:
    path = folder / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert re.search(sentence, pinoise("train", "--data", name, "--out", "run", *tiny).sentence)
    assert not Path("run").exists()
    assert pinoise("train", "--data", "digits", "--rows", "50", "--out", "run", *tiny).code == 0


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["x", "y", "", "x"], r"label column 'y': the label of data row 3 is missing \(1 missing in all\)"),
        (["x", "x", "x", "x"], r"label column 'y': every label is 'x', but classes need two or more"),
    ],
)
def test_bad_labels_are_one_sentence(
    pinoise: Command, folder: Path, tiny: list[str], labels: list[str], sentence: str
) -> None:
    Path("x.csv").write_text("a,y\n" + "".join(f"{row},{label}\n" for row, label in enumerate(labels)))
    for verb in (["train", "--out", "run"], ["compare", "--methods", "fixed"]):
        assert re.search(sentence, pinoise(*verb, "--data", "x.csv", "--label", "y", *tiny).sentence)


def test_comparing_needs_labels(pinoise: Command, people: Path) -> None:
    sentence = pinoise("compare", "--data", "people.csv").sentence
    assert sentence == "people has no labels to score with: name their column with --label."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "digts"], "unknown data set 'digts': did you mean 'digits'?"),
        (["--label", "y"], "so label=y cannot apply"),
        (["--method", "simlcr"], "setting 'method' is 'simlcr': did you mean 'simclr'? Allowed: simclr, simcl, clae, "),
        (["--encoder", "resnet"], "Allowed: auto, mlp, resnet18, resnet50, vit, or package.module:name."),
        (["--batch-size", "-3"], "setting 'training.batch_size' is -3"),
        (["--learning-rate", "nan"], "setting 'training.learning_rate'"),
        (["--device", "gpu"], "unknown device 'gpu': did you mean 'cpu'?"),
        (["--set", "encoder.hiden=3"], "unknown setting 'encoder.hiden': did you mean 'encoder.hidden'?"),
        (["--set", "hidden"], "--set got 'hidden': write section.key=value"),
        (["--set", "training.seed=1", "--set", "training.seed.x=1"], "setting 'training.seed' is {"),
        (["--set", "views.noise=none"], "method 'simclr' compares two views"),
        (["--set", "training.information_draws=1"], "information_draws is 1: give at least 2, or 0"),
        (["--config", "gone.yaml"], "gone.yaml cannot be read"),
    ],
)
def test_a_bad_setting_is_one_sentence_and_makes_no_folder(
    pinoise: Command, folder: Path, arguments: list[str], sentence: str
) -> None:
    assert sentence in pinoise("train", "--data", "digits", "--out", "run", *arguments).sentence
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("verb", [["train", "--out", "run"], ["compare", "--methods", "fixed"]])
def test_a_device_that_is_absent_is_one_sentence(
    pinoise: Command, folder: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "device 'cuda' is not available" in pinoise(*verb, "--data", "digits", "--device", "cuda").sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--out is missing"),
        (["--out", "run"], "--data is missing"),
        (["--data", "digits", "--out", "file"], "file is a file"),
        (["--data", "digits", "--out", "file/run"], "a run cannot be written to file/run"),
        (["--data", "digits", "--out", "other"], "other is not empty and not a run folder"),
    ],
)
def test_a_bad_run_folder_is_one_sentence(pinoise: Command, folder: Path, arguments: list[str], sentence: str) -> None:
    Path("file").write_text("kept")
    Path("other").mkdir()
    Path("other/mine.txt").write_text("kept")
    assert sentence in pinoise("train", *arguments).sentence
    assert Path("file").read_text() == Path("other/mine.txt").read_text() == "kept"


def test_a_used_run_folder_is_refused_and_kept(pinoise: Command, digits_run: Path) -> None:
    before = {path: path.read_bytes() for path in digits_run.rglob("*") if path.is_file()}
    sentence = pinoise("train", "--data", "digits", "--out", digits_run).sentence
    assert (
        sentence
        == f"{digits_run} already holds a run: choose another --out, or continue it with --resume {digits_run}."
    )
    assert {path: path.read_bytes() for path in digits_run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--methods", "sacrf"], "unknown method 'sacrf': did you mean 'scarf'?"),
        (["--seeds", "0"], "seeds is 0"),
        (["--seeds=3,-1"], "a seed is -1"),
        (["--rows", "1"], "setting 'data.rows' is 1"),
        (["--set", "training.seed=4"], "a comparison sets training.seed itself"),
        (["--methods", "fixed,simcl", "--set", "method=clae"], "method is what makes method 'simcl'"),
        (["--set", "method.name=clae", "--methods", "simcl"], "method is what makes method 'simcl'"),
        (["--methods", "pinda", "--set", "objective=paper"], "objective is what makes method 'pinda'"),
        (["--epochs", "3", "--steps", "5"], "epochs is 3 and steps is 5: give one of them."),
        (["--steps", "0"], "steps is 0: give a whole number from 1"),
        (["--fresh", "--cache", "kept"], "--fresh keeps nothing and --cache says where to: give one of them."),
        (["--embedding", "join"], "unknown embedding 'join': did you mean 'joined'? Allowed: joined, learned."),
    ],
)
def test_a_comparison_that_cannot_be_made_is_one_sentence(
    pinoise: Command, arguments: list[str], sentence: str
) -> None:
    assert sentence in pinoise("compare", "--data", "digits", *arguments).sentence


def test_a_comparison_needs_data(pinoise: Command) -> None:
    assert pinoise("compare").sentence.startswith("there is nothing to compare on: give names, files or data sets.")


def test_a_folder_that_cannot_keep_cells_is_one_sentence(pinoise: Command, folder: Path) -> None:
    Path("file").write_text("kept")
    sentence = pinoise("compare", "--data", "wine", "--cache", "file").sentence
    assert sentence.startswith("finished cells cannot be written to file: file is a file")
    assert Path("file").read_text() == "kept"


def test_information_needs_two_draws(pinoise: Command, digits_run: Path) -> None:
    sentence = pinoise("evaluate", digits_run, "--information", "--draws", 1).sentence
    assert sentence.startswith("Invalid value for '--draws': ")
