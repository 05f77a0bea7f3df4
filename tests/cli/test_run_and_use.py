"""From data to a run, and from a run to an embedding and its scores."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

from pinoise.evaluation import embed as embed_rows
from pinoise.model import load_run
from pinoise.training.metrics import METRICS

Command = Callable[..., Any]


def test_datasets_are_listed_whole_and_as_json(pinoise: Command) -> None:
    listed = json.loads(pinoise("datasets", "--json").out)
    digits = next(entry for entry in listed if entry["name"] == "digits")
    assert digits["shape"] == [64]
    assert digits["classes"] == 10
    assert digits["found"] is True
    table = pinoise("datasets").out
    assert all(entry["name"] in table and entry["title"] in table for entry in listed)
    assert "…" not in table


def test_a_run_folder_holds_all_that_a_run_is(digits_run: Path) -> None:
    assert {path.name for path in digits_run.iterdir()} == {
        *("config.yaml", "data.json", "environment.json", "metrics.csv", "tensorboard", "checkpoints", "run.lock"),
        *("encoder.safetensors", "embedding.safetensors", "noise.safetensors", "standardizer.safetensors"),
    }


def test_train_tells_machines_how_it_ended(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    result = pinoise("train", "--data", "digits", "--rows", "128", "--batch-size", "64", "--out", "r", "--json", *tiny)
    ended = json.loads(result.out)
    assert result.code == 0
    assert ended["run"] == "r"
    assert (ended["epoch"], ended["step"]) == (2, 4)
    assert np.isfinite(ended["loss"])
    assert ended.keys() == {"run", "epoch", "step", "loss", "metrics", "seconds", "flags"}
    assert tuple(ended["metrics"]) == METRICS
    with Path("r/metrics.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == ("epoch", "step", "loss", *METRICS, "seconds")
    assert ended["metrics"].pop("held_out") is None  # no early stopping
    assert {name: float(lines[-1][name]) for name in METRICS if name != "held_out"} == ended["metrics"]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".NPY"])
def test_embed_writes_the_same_numbers_in_every_format(
    pinoise: Command, folder: Path, digits_run: Path, suffix: str
) -> None:
    out = folder / f"e{suffix}"
    shown = json.loads(pinoise("embed", digits_run, "--data", "digits", "--out", out, "--json").out)
    run = load_run(digits_run)
    expected = embed_rows(run.embedding, run.rows(run.read("digits").train.x, where="digits"))
    match suffix:
        case ".npz":
            stored = np.load(out)
            assert set(stored) == {"X_train", "X_test"}
            assert stored["X_test"].shape == (360, 72)
            found = stored["X_train"]
        case ".csv":
            found = np.stack([c.to_numpy() for c in pyarrow.csv.read_csv(out).columns], axis=1)
        case ".parquet":
            found = np.stack([c.to_numpy() for c in pyarrow.parquet.read_table(out).columns], axis=1)
        case _:
            found = np.load(out)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert shown["shapes"]["train"] == [1437, 72]
    assert sorted(path.name for path in folder.iterdir()) == sorted([out.name, digits_run.name])  # nothing partial


def test_new_data_is_not_called_training_data(pinoise: Command, people: Path, tiny: list[str]) -> None:
    assert pinoise("train", "--data", "people.csv", "--label", "group", "--out", "run", *tiny).code == 0
    said = pinoise("embed", "run", "--data", "people.csv", "--out", "z.npz")
    assert said.out == "z.npz: all 60 × 15\n"
    with np.load("z.npz") as archive:
        assert list(archive) == ["X"]
    assert pinoise("embed", "run", "--data", "people.csv", "--part", "test", "--out", "t.npy").sentence == (
        "people.csv has no test part: leave out --part."
    )


@pytest.mark.parametrize("out", ["z.csv", "z.parquet"])
def test_columns_that_are_kept_come_as_they_are_before_the_embedding(
    pinoise: Command, people: Path, tiny: list[str], out: str
) -> None:
    assert pinoise("train", "--data", "people.csv", "--label", "group", "--out", "run", *tiny).code == 0
    lines = people.read_text().splitlines()
    Path("new.csv").write_text("\n".join([f"id,{lines[0]}", *(f"00{i},{line}" for i, line in enumerate(lines[1:]))]))
    said = pinoise("embed", "run", "--data", "new.csv", "--keep", "group", "--keep", "id", "--out", out)
    assert said.out == f"{out}: all 60 × 15, beside group, id\n"
    if out.endswith("csv"):
        read = pyarrow.csv.ConvertOptions(column_types={"id": "string"})
        table = pyarrow.csv.read_csv(out, convert_options=read)
    else:
        table = pyarrow.parquet.read_table(out)
    features = ["age", "age=missing", "town=Bern", "town=Oslo", "town=Rome", "town=missing", "income"]
    assert table.column_names[:9] == ["group", "id", *features]
    assert table.column_names[9:] == [f"pinda{i}" for i in range(8)]
    assert table.column("id").to_pylist() == [f"00{i}" for i in range(60)]
    assert table.column("group").to_pylist() == [line.rsplit(",", 1)[1] for line in lines[1:]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--keep", "grup", "--out", "z.csv"], "unknown column of people.csv 'grup': did you mean 'group'?"),
        (["--keep", "group", "--out", "z.npy"], "z.npy has no columns to keep others beside: write .csv or .parquet."),
        (["--keep", "age", "--out", "z.csv"], "--keep age: the embedding has this column already"),
        (["--data", "wine", "--keep", "id", "--out", "z.csv"], "--keep names columns of a table"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    pinoise: Command, people: Path, tiny: list[str], arguments: list[str], sentence: str
) -> None:
    assert pinoise("train", "--data", "people.csv", "--label", "group", "--out", "run", *tiny).code == 0
    given = [] if "--data" in arguments else ["--data", "people.csv"]
    assert pinoise("embed", "run", *given, *arguments).sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "e.txt"], "e.txt has extension '.txt': an embedding is written as .npy, .npz, .csv, .parquet."),
        (["--out", "e"], "e has no extension"),
        (["--out", "gone/e.npy"], "gone/e.npy cannot be written: the folder gone does not exist."),
        (["--out", "e.npy", "--part", "tset"], "unknown part 'tset': did you mean 'test'?"),
    ],
)
def test_embed_refuses_before_any_work(
    pinoise: Command, folder: Path, digits_run: Path, arguments: list[str], sentence: str
) -> None:
    assert pinoise("embed", digits_run, "--data", "digits", *arguments).sentence.startswith(sentence)
    assert [path.name for path in folder.iterdir()] == [digits_run.name]


def test_evaluate_scores_the_embedding_beside_raw_and_untrained(pinoise: Command, digits_run: Path) -> None:
    table = pinoise("evaluate", digits_run)
    assert table.code == 0
    assert [line.split()[0] for line in table.out.splitlines() if line[:1].isalpha()] == [
        *("accuracy", "raw", "untrained", "learned", "kNN:", "Worse", "Of"),
    ]
    scores = json.loads(pinoise("evaluate", digits_run, "--json").out)
    assert json.loads((digits_run / "evaluation.json").read_text()) == scores
    assert scores["scores"].keys() == {"raw", "untrained", "learned"}
    assert f"{100 * scores['scores']['raw']['knn']:.1f}" in table.out
    gap = 100 * (scores["scores"]["learned"]["few"] - scores["scores"]["raw"]["few"])
    assert gap < 0
    assert f"accuracy is {-gap:.1f} points lower" in table.out


def test_a_table_of_a_user_goes_through_every_verb(
    pinoise: Command, folder: Path, people: Path, tiny: list[str]
) -> None:
    result = pinoise("train", "--data", "people.csv", "--label", "group", "--out", "run", *tiny)
    assert result.code == 0
    notes = [line for line in result.err.splitlines() if line.startswith("note: ")]
    assert any("age" in note and "median" in note for note in notes)
    assert any("town" in note and "missing" in note for note in notes)
    first_epoch = result.err.index("epoch 1")
    assert result.err.rindex("note: ") < first_epoch  # what was done to the data is said before the wait

    later = folder / "later.csv"
    later.write_text("town,income,age\nParis,1200,40\nOslo,1000,\n")
    embedded = pinoise("embed", "run", "--data", "later.csv", "--out", "later.npy")
    assert embedded.code == 0
    assert "Paris" in embedded.err
    width = len(load_run("run").standardizer.mean) + 8
    assert np.load("later.npy").shape == (2, width)

    scores = json.loads(pinoise("evaluate", "run", "--json").out)["scores"]
    assert scores["raw"]["knn"] == 1.0  # the groups lie far apart

    compared = pinoise(
        "compare", "--data", "people.csv", "--label", "group", "--methods", "fixed", "--seeds", "1", *tiny
    )
    assert compared.code == 0
    assert "people" in compared.out
    assert "random noise" in compared.out


def test_a_run_finds_its_file_again_from_another_folder(
    pinoise: Command, people: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    run = people.parent / "run"
    assert pinoise("train", "--data", "people.csv", "--label", "group", "--out", "run", *tiny).code == 0
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert pinoise("evaluate", run).code == 0
    assert pinoise("train", "--resume", run).code == 0


def test_settings_come_from_a_file_under_the_flags(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    Path("my.yaml").write_text("data: {source: digits, rows: 100}\ntraining: {epochs: 7, seed: 3}\nobjective: fixed\n")
    assert pinoise("train", "--config", "my.yaml", "--out", "r", *tiny).code == 0
    used = yaml.safe_load(Path("r/config.yaml").read_text())
    assert (used["training"]["epochs"], used["training"]["seed"]) == (2, 3)
    assert used["objective"]["name"] == "fixed"
    assert used["data"]["rows"] == 100
    assert pinoise("train", "--config", "r/config.yaml", "--out", "again").code == 0
    assert yaml.safe_load(Path("again/config.yaml").read_text()) == used


def test_collapsed_noise_is_a_warning_by_name(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    shrunk = ["--objective", "paper", "--set", "noise.initial_scale=0.001"]
    result = pinoise("train", "--data", "digits", "--rows", "100", "--out", "r", "--json", *shrunk, *tiny)
    assert result.code == 0
    assert "warning: shrink: the learned noise collapsed" in result.err
    assert "shrink" in json.loads(result.out)["flags"]


def test_evaluate_says_what_views_tell_about_the_task(pinoise: Command, digits_run: Path) -> None:
    result = pinoise("evaluate", digits_run, "--information", "--draws", 4, "--json")
    found = json.loads(result.out)["information"]
    assert json.loads((digits_run / "evaluation.json").read_text())["information"] == found
    assert list(found) == ["the run's own", "identity", "gaussian", "scarf", "vime", "dacl", "neighbours"]
    for name, measured in found.items():
        assert measured["draws"] == 4
        assert measured["samples"] == 200
        assert measured["exact"]["value"] >= 0
        gap = measured["task_entropy"]["value"] - measured["conditional_entropy"]["value"]
        assert measured["plug_in"]["value"] == pytest.approx(gap), name
    assert found["identity"]["exact"]["value"] == pytest.approx(0, abs=1e-9)  # a view that is no view tells nothing
    assert found["identity"]["plug_in"]["value"] == pytest.approx(0, abs=1e-9)
    assert found["the run's own"]["exact"]["value"] > 0
    table = pinoise("evaluate", digits_run, "--information", "--draws", 4).out
    for name, measured in found.items():
        (line,) = [line for line in table.splitlines() if line.startswith(f"{name} ")]
        assert f"{measured['exact']['value']:.3f} ±" in line
    assert json.loads(pinoise("evaluate", digits_run, "--json").out)["information"] == found  # of the same weights


def test_evaluate_can_score_with_fewer_rows(pinoise: Command, digits_run: Path) -> None:
    whole = json.loads(pinoise("evaluate", digits_run, "--json").out)["scores"]
    fewer = pinoise("evaluate", digits_run, "--rows", 60, "--json")
    assert "60 of 200 training rows were drawn at random" in fewer.err
    scores = json.loads(fewer.out)["scores"]
    for name, found in scores.items():
        correct = 60 * found["knn"]
        assert correct == pytest.approx(round(correct)), name  # of 60 test rows
        assert found != whole[name]
    assert "--rows is 4: kNN looks at 5 training rows" in pinoise("evaluate", digits_run, "--rows", 4).sentence
    assert pinoise("evaluate", digits_run, "--rows", 5).code == 0
