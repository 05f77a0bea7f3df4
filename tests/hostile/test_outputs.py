"""No verb writes over its input or over a file of a run that it did not make, and over another file only if forced."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image

from pinoise import UserError, load_run
from pinoise.cli import main
from pinoise.evaluation import write_embedding
from pinoise.files import REPORT_FILES, RUN_FILES, RUN_FOLDERS, belongs_to_run
from pinoise.report import write_report

Command = Callable[..., Any]
X = np.random.default_rng(0).normal(size=(40, 4))
FORMATS = ("csv", "npy", "npz", "parquet")
TINY = ["--set", "encoder.hidden=8", "--set", "encoder.out_features=4", "--epochs", "1", "--device", "cpu"]


def write_table(path: Path) -> None:
    lines = [",".join(f"{value:.4f}" for value in row) + (",a" if row[0] > 0 else ",b") for row in X]
    path.write_text("\n".join(["p,q,r,s,class", *lines]) + "\n")


def train(data: Path, out: Path, *more: str) -> None:
    before, sys.argv = sys.argv, ["pinoise", "train", "--data", str(data), "--out", str(out), *TINY, *more]
    try:
        main()
    finally:
        sys.argv = before


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same samples in every format, and three runs, one of them with a classifier."""
    folder = tmp_path_factory.mktemp("made")
    write_table(folder / "d.csv")
    table = pyarrow.csv.read_csv(folder / "d.csv")
    pyarrow.parquet.write_table(table, folder / "d.parquet")
    np.save(folder / "d.npy", X)
    np.savez(folder / "d.npz", X=X)
    train(folder / "d.csv", folder / "r", "--label", "class")
    train(folder / "d.npy", folder / "other")
    train(folder / "d.csv", folder / "voting", "--target", "class")
    return folder


@pytest.fixture
def here(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(_made, folder)
    for run in ("r", "other", "voting"):  # a run holds the full path of its data
        config = folder / run / "config.yaml"
        config.write_text(config.read_text().replace(str(_made), str(folder)))
    monkeypatch.chdir(folder)
    return folder


def content(folder: Path) -> dict[Path, bytes | str]:
    found = sorted(folder.rglob("*"))
    return {
        path: str(path.readlink()) if path.is_symlink() else path.read_bytes() for path in found if not path.is_dir()
    }


def refused(pinoise: Command, here: Path, *arguments: object) -> str:
    """Return the sentence with which a command is refused, checked to leave every file as it was."""
    before = content(here)
    sentence: str = pinoise(*arguments).sentence
    assert content(here) == before, arguments
    return sentence


def run_of(data: str) -> str:
    """The run that can read a file."""
    return "r" if data.endswith((".csv", ".parquet")) else "other"


@pytest.mark.parametrize("ending", FORMATS)
def test_embed_does_not_write_over_its_input_under_any_name(pinoise: Command, here: Path, ending: str) -> None:
    data = f"d.{ending}"
    Path(f"link.{ending}").symlink_to(data)
    os.link(data, f"hard.{ending}")
    Path("sub").mkdir()
    names = [data, f"./{data}", str(here / data), f"sub/../{data}", f"link.{ending}", f"hard.{ending}"]
    if Path(data.upper()).exists():  # a file system that does not tell capitals
        names.append(data.upper())
    for out in names:
        for force in ([], ["--force"]):
            sentence = refused(pinoise, here, "embed", run_of(data), "--data", data, "--out", out, *force)
            assert sentence == f"{Path(out)} is an input: choose another file to write."
    shutil.copy(data, f"copy.{ending}")
    trained_on = {"r": "d.csv", "other": "d.npy"}[run_of(data)]
    embed = ["embed", run_of(data), "--data", f"copy.{ending}", "--out", trained_on, "--force"]
    assert "is an input" in refused(pinoise, here, *embed)


def test_every_file_in_a_run_folder_is_known(pinoise: Command, here: Path) -> None:
    assert pinoise("evaluate", "r").code == 0
    assert pinoise("report", "r", "other").code == 2  # not the same data
    assert pinoise("report", "r", "r").code == 0
    files = [path for run in ("r", "voting") for path in Path(run).rglob("*") if path.is_file()]
    inside = {path.parts[1] for path in files}
    # of images, of who trains right now, of --logger, and of several runs on images
    elsewhere = {"noise.png", "run.lock.json", "logs", "comparison.png"}
    assert inside | elsewhere == {*RUN_FILES, *RUN_FOLDERS}
    assert set(REPORT_FILES) <= RUN_FILES


def test_predict_does_not_write_over_its_input_under_any_name(pinoise: Command, here: Path) -> None:
    Path("link.csv").symlink_to("d.csv")
    os.link("d.csv", "hard.csv")
    for out in ("d.csv", str(here / "d.csv"), "r/../d.csv", "link.csv", "hard.csv"):
        for force in ([], ["--force"]):
            sentence = refused(pinoise, here, "predict", "voting", "--data", "d.csv", "--out", out, *force)
            assert sentence == f"{Path(out)} is an input: choose another file to write."
    shutil.copy("d.csv", "copy.csv")
    predict = ["predict", "voting", "--data", "copy.csv", "--force", "--out"]
    assert "is an input" in refused(pinoise, here, *predict, "d.csv")  # what the run was trained on


@pytest.mark.parametrize("run", ["voting", "other"])
def test_predict_does_not_write_over_files_of_any_run(pinoise: Command, here: Path, run: str) -> None:
    Path("near.csv").symlink_to(f"{run}/metrics.csv")
    os.link("voting/metrics.csv", "hard.csv")
    for out in (f"{run}/metrics.csv", f"{run}/METRICS.CSV", "near.csv", f"{run}/checkpoints/z.csv", "hard.csv"):
        for force in ([], ["--force"]):
            sentence = refused(pinoise, here, "predict", "voting", "--data", "d.csv", "--out", out, *force)
            assert "is an input" in sentence or "belongs to a run" in sentence
    Path("mine.parquet").write_text("mine")
    assert "already exists" in refused(pinoise, here, "predict", "voting", "--data", "d.csv", "--out", "mine.parquet")
    for out in ("z", "z.npy", "voting", "no/such/z.csv"):
        refused(pinoise, here, "predict", "voting", "--data", "d.csv", "--out", out, "--force")
    assert pinoise("predict", "voting", "--data", "d.csv", "--out", f"{run}/z.csv").code == 0  # a new file may be there


def test_training_on_replaces_links_and_not_what_they_lead_to(pinoise: Command, here: Path) -> None:
    train(here / "d.csv", here / "mine", "--target", "class")
    for name in ("encoder", "embedding", "classifier"):
        Path(f"precious.{name}").write_text("mine")
        Path("mine", f"{name}.safetensors").unlink()
        Path("mine", f"{name}.safetensors").symlink_to(here / f"precious.{name}")
    result = pinoise("train", "--resume", "mine", "--target", "class", "--epochs", "2")
    assert result.code == 0, result.err
    assert [path.read_text() for path in sorted(here.glob("precious.*"))] == ["mine"] * 3
    assert pinoise("predict", "mine", "--data", "d.csv", "--out", "z.csv").code == 0


@pytest.mark.parametrize("run", ["r", "other"])
def test_embed_does_not_write_over_files_of_any_run(pinoise: Command, here: Path, run: str) -> None:
    Path("near.csv").symlink_to(f"{run}/metrics.csv")
    os.link("r/metrics.csv", "hard.csv")
    names = [f"{run}/metrics.csv", f"{run}/METRICS.CSV", "near.csv", f"{run}/checkpoints/z.npy", "hard.csv"]
    for out in names:
        for force in ([], ["--force"]):
            sentence = refused(pinoise, here, "embed", "r", "--data", "d.csv", "--out", out, *force)
            assert "is an input" in sentence or "belongs to a run" in sentence
    for name in RUN_FILES:
        assert belongs_to_run(Path(run, name))
        with pytest.raises(UserError, match=r"belongs to a run|has extension"):
            write_embedding(Path(run, name), {"train": X}, columns=[], force=True)
    assert pinoise("embed", "r", "--data", "d.csv", "--out", f"{run}/z.npy").code == 0  # a new file may be there


@pytest.mark.parametrize("ending", FORMATS)
def test_an_existing_file_is_replaced_only_if_forced(pinoise: Command, here: Path, ending: str) -> None:
    out = Path(f"z.{ending}")
    embed = ["embed", "r", "--data", "d.csv", "--out", out]
    out.write_text("mine")
    assert refused(pinoise, here, *embed) == (
        f"z.{ending} already exists: choose another file to write, or replace it with --force."
    )
    with pytest.raises(UserError, match="already exists"):
        write_embedding(out, {"train": X}, columns=[])
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
    for name in "ab":
        Path("images", name).mkdir(parents=True)
        for number in range(4):
            pixels = np.random.default_rng(number).integers(0, 255, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(Path("images", name, f"{number}.png"))
    train(Path("images"), Path("seen"), "--encoder", "mlp", "--batch-size", "4")
    for out in ("images", "images/a", "images/new"):
        sentence = refused(pinoise, here, "report", "seen", "--out", out, "--force")
        assert sentence.startswith(f"{out} is in the folder of the data, ")
    assert "is an input" in refused(
        pinoise, here, "embed", "seen", "--data", "images", "--out", _file("images/labels.csv"), "--force"
    )


def _file(name: str) -> str:
    Path(name).write_text("mine")
    return name


def test_compare_and_evaluate_leave_every_file_but_their_own(
    pinoise: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_CACHE", str(here.parent / "cache"))
    before = content(here)
    compare = ["compare", "--data", "d.csv", "--label", "class", "--methods", "fixed", "--seeds", "1", "--epochs", "1"]
    for cache in ("r", ".", "r/checkpoints"):
        assert pinoise(*compare, "--set", "encoder.hidden=8", "--cache", cache).code == 0
    assert "is a file" in refused(pinoise, here, "train", "--data", "d.csv", "--out", "d.csv")
    assert "already holds a run" in refused(pinoise, here, "train", "--data", "d.csv", "--out", "r")
    assert pinoise("evaluate", "r").code == 0
    after = content(here)
    assert {path: after[path] for path in before} == before
    new = {path.relative_to(here) for path in after.keys() - before.keys()}
    assert Path("r/evaluation.json") in new
    cells = [path for path in new - {Path("r/evaluation.json")} if path.suffix != ".lock"]
    assert all(path.name == "about.json" for path in cells), cells  # each in a folder of its own
