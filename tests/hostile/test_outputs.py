"""No verb writes over its input or over a file of a run that it did not make, and over another file only if forced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problems import TINY, contents, write_images

from pinoise import UserError, load_run
from pinoise.evaluation import write_embedding
from pinoise.files import REPORT_FILES, RUN_FILES, RUN_FOLDERS, belongs_to_run
from pinoise.report import write_report

Command = Callable[..., Any]
FORMATS = ("csv", "npy", "npz", "parquet")


def refused(pinoise: Command, here: Path, *arguments: object) -> str:
    """Return the sentence with which a command is refused, checked to leave every file as it was."""
    before = contents(here)
    sentence: str = pinoise(*arguments).sentence
    assert contents(here) == before, arguments
    return sentence


def verb_on(data: str, verb: str = "embed") -> tuple[str, ...]:
    """A verb with the run that can read a file."""
    run = "r" if data.endswith((".csv", ".parquet")) else "other"
    return verb, run, "--data", data


@pytest.mark.parametrize(
    ("verb", "data"),
    [*(("embed", f"d.{ending}") for ending in FORMATS), ("predict", "d.csv"), ("predict", "d.parquet")],
)
def test_no_verb_writes_over_its_input_under_any_name(pinoise: Command, here: Path, verb: str, data: str) -> None:
    ending = Path(data).suffix
    Path(f"link{ending}").symlink_to(data)
    os.link(data, f"hard{ending}")
    Path("sub").mkdir()
    names = [data, f"./{data}", str(here / data), f"sub/../{data}", f"link{ending}", f"hard{ending}"]
    if Path(data.upper()).exists():  # a file system that does not tell capitals
        names.append(data.upper())
    for out in names:
        for force in ([], ["--force"]):
            sentence = refused(pinoise, here, *verb_on(data, verb), "--out", out, *force)
            assert sentence == f"{Path(out)} is an input: choose another file to write."
    shutil.copy(data, f"copy{ending}")
    trained_on = "d.npy" if verb_on(data)[1] == "other" else "d.csv"
    again = (*verb_on(f"copy{ending}", verb), "--out", trained_on, "--force")
    assert "is an input" in refused(pinoise, here, *again)


@pytest.mark.parametrize("verb", ["embed", "predict"])
@pytest.mark.parametrize("run", ["r", "other"])
def test_no_verb_writes_over_files_of_any_run(pinoise: Command, here: Path, run: str, verb: str) -> None:
    Path("near.csv").symlink_to(f"{run}/metrics.csv")
    os.link(Path(verb_on("d.csv", verb)[1], "metrics.csv"), "hard.csv")  # of the run that is read
    for out in (f"{run}/metrics.csv", f"{run}/METRICS.CSV", "near.csv", f"{run}/checkpoints/z.csv", "hard.csv"):
        for force in ([], ["--force"]):
            sentence = refused(pinoise, here, *verb_on("d.csv", verb), "--out", out, *force)
            assert "is an input" in sentence or "belongs to a run" in sentence
    for out in ("z", "r", "no/such/z.csv"):
        refused(pinoise, here, *verb_on("d.csv", verb), "--out", out, "--force")
    assert pinoise(*verb_on("d.csv", verb), "--out", f"{run}/z.csv").code == 0  # a new file may be there
    for name in RUN_FILES:
        assert belongs_to_run(Path(run, name))


def test_every_file_in_a_run_folder_is_known(pinoise: Command, here: Path) -> None:
    assert pinoise("evaluate", "r").code == 0
    assert pinoise("report", "r", "other").code == 2  # not the same data
    assert pinoise("report", "r", "r").code == 0
    files = [path for path in Path("r").rglob("*") if path.is_file()]
    inside = {path.parts[1] for path in files}
    # of images, and of several runs on images
    elsewhere = {"noise.png", "comparison.png"}
    assert inside | elsewhere == {*RUN_FILES, *RUN_FOLDERS}
    assert set(REPORT_FILES) <= RUN_FILES


def test_training_on_replaces_links_and_not_what_they_lead_to(pinoise: Command, here: Path) -> None:
    train = ("train", "--data", "d.csv", "--out", "mine", "--target", "class", "--epochs", "1", *TINY)
    assert pinoise(*train).code == 0
    for name in ("encoder", "embedding", "classifier"):
        Path(f"precious.{name}").write_text("mine")
        Path("mine", f"{name}.safetensors").unlink()
        Path("mine", f"{name}.safetensors").symlink_to(here / f"precious.{name}")
    result = pinoise("train", "--resume", "mine", "--target", "class", "--epochs", "2")
    assert result.code == 0, result.err
    assert [path.read_text() for path in sorted(here.glob("precious.*"))] == ["mine"] * 3
    assert pinoise("predict", "mine", "--data", "d.csv", "--out", "z.csv").code == 0


@pytest.mark.parametrize("ending", FORMATS)
def test_an_existing_file_is_replaced_only_if_forced(pinoise: Command, here: Path, ending: str) -> None:
    out = Path(f"z.{ending}")
    embed = ["embed", "r", "--data", "d.csv", "--out", out]
    out.write_text("mine")
    assert refused(pinoise, here, *embed) == (
        f"z.{ending} already exists: choose another file to write, or replace it with --force."
    )
    with pytest.raises(UserError, match="already exists"):
        write_embedding(out, {"train": np.eye(3)}, columns=[])
    assert pinoise(*embed, "--force").code == 0
    assert out.read_bytes() != b"mine"
    out.unlink()
    out.symlink_to("nowhere")
    assert "already exists" in refused(pinoise, here, *embed)  # a link that leads nowhere is something too
    out.unlink()
    out.symlink_to(out.name)
    assert "already exists" in refused(pinoise, here, *embed)  # and so is one that leads to itself


def test_embed_does_not_write_over_a_file_of_the_catalogue(
    pinoise: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinoise.data.source.locate", lambda name: {"x": Path("set.npy")})
    shutil.copy("d.npy", "set.npy")
    sentence = refused(pinoise, here, "embed", "r", "--data", "digits", "--out", "set.npy", "--force")
    assert sentence == "set.npy is an input: choose another file to write."


def test_a_report_is_written_again_in_its_own_run_and_elsewhere_only_if_forced(pinoise: Command, here: Path) -> None:
    before = {path: path.read_bytes() for path in Path("r").iterdir() if path.is_file()}
    for out in ([], [], ["--out", "r"], ["--out", here / "r"]):
        assert pinoise("report", "r", *out).code == 0
    assert pinoise("report", "r", "--out", "page").code == 0
    sentence = refused(pinoise, here, "report", "r", "--out", "page")
    assert sentence.startswith("page/report.html already exists")
    Path("page/report.html").write_text("mine")
    assert "already exists" in refused(pinoise, here, "report", "r", "--out", "page")
    with pytest.raises(UserError, match="already exists"):
        write_report([load_run("r")], folder=Path("page"))
    assert pinoise("report", "r", "--out", "page", "--force").code == 0
    assert Path("page/report.html").read_text() != "mine"
    assert {path: path.read_bytes() for path in before} == before


def test_a_report_does_not_go_into_another_run_nor_among_images(pinoise: Command, here: Path) -> None:
    for force in ([], ["--force"]):
        sentence = refused(pinoise, here, "report", "r", "--out", "other", *force)
        assert sentence == "other holds another run than r: name another folder with --out."
        assert "belongs to a run" in refused(pinoise, here, "report", "r", "--out", "other/checkpoints", *force)
    write_images(Path("images"), *(f"{name}/{number}.png" for name in "ab" for number in range(4)))
    train = ("train", "--data", "images", "--out", "seen", "--encoder", "mlp", "--epochs", "1", *TINY)
    assert pinoise(*train, "--batch-size", "4").code == 0
    for out in ("images", "images/a", "images/new"):
        sentence = refused(pinoise, here, "report", "seen", "--out", out, "--force")
        assert sentence.startswith(f"{out} is in the folder of the data, ")
    Path("images/labels.csv").write_text("mine")
    embed = ("embed", "seen", "--data", "images", "--out", "images/labels.csv", "--force")
    assert "is an input" in refused(pinoise, here, *embed)


def test_compare_and_evaluate_leave_every_file_but_their_own(
    pinoise: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_CACHE", str(here.parent / "cache"))
    before = contents(here)
    compare = ["compare", "--data", "d.csv", "--label", "class", "--methods", "fixed", "--seeds", "1", "--epochs", "1"]
    for cache in ("r", ".", "r/checkpoints"):
        assert pinoise(*compare, "--set", "encoder.hidden=8", "--cache", cache).code == 0
    assert "is a file" in refused(pinoise, here, "train", "--data", "d.csv", "--out", "d.csv")
    assert "already holds a run" in refused(pinoise, here, "train", "--data", "d.csv", "--out", "r")
    assert pinoise("evaluate", "r").code == 0
    after = contents(here)
    assert {path: after[path] for path in before} == before
    new = {Path(path).relative_to(here) for path in after.keys() - before.keys()}
    assert Path("r/evaluation.json") in new
    cells = [path for path in new - {Path("r/evaluation.json")} if path.suffix != ".lock"]
    assert all(path.name == "about.json" for path in cells), cells  # each in a folder of its own
