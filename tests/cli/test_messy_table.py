"""A table as the world has it goes through every verb and through a Pipeline, with nothing prepared by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from pinoise import PiNDA, PiNDAClassifier
from pinoise.cli.app import app
from pinoise.data import Dataset
from pinoise.model import load_run

SMALL = ["--epochs", "2", "--set", "encoder.hidden=16", "--set", "encoder.out_features=8"]
ROWS = 150


@pytest.fixture(scope="module")
def table() -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    words = {0: "slow late broken box", 1: "quick kind good price"}
    rows = []
    for number in range(ROWS):
        kind = int(random.integers(2))
        month, day, hour = random.integers(1, 13), random.integers(1, 28), random.integers(24)
        comment = " ".join(
            random.permutation([*words[kind].split(), *random.choice(["the", "was", "and"], 3), f"w{number}"])
        )
        rows.append(
            {
                "row": number + 1,
                "card": int(random.integers(4 * 10**15, 9 * 10**15)),
                "code": f"A-{number:04d}",
                "when": f"2024-{month:02d}-{day:02d} {hour:02d}:30:00",
                "born": f"{random.integers(1, 28):02d}.{random.integers(1, 13):02d}.19{random.integers(50, 99)}",
                "income": f"${random.integers(1000, 90000):,}.00",
                "share": f"{random.integers(5, 95)} %",
                "member": "true" if random.random() < 0.3 + 0.4 * kind else "false",
                "city": f"city{min(59, int(random.zipf(1.5)) - 1):02d}",
                "visits": int(random.poisson(4 + 3 * kind)) if random.random() > 0.1 else "",
                "comment": comment,
                "bought": "yes" if kind else "no",
            }
        )
    return rows


@pytest.fixture(scope="module")
def folder(table: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("messy")
    for name, rows, more in (("train.csv", table, {}), ("later.csv", table[:60], {"note": "2024-01-01", "blob": "x"})):
        with (folder / name).open("w", newline="", encoding="latin-1") as file:
            writer = csv.DictWriter(file, [*rows[0], *more])
            writer.writeheader()
            writer.writerows({**row, **more} for row in rows)
    return folder


def run(*arguments: str) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 0, found.output
    return found.output


def test_every_verb_takes_a_messy_table(folder: Path) -> None:
    train, later, out = (str(folder / name) for name in ("train.csv", "later.csv", "run"))
    said = " ".join(
        run("train", "--data", train, "--label", "bought", "--text", "comment", "--out", out, *SMALL).split()
    )
    for sentence in (
        "dropped the column 'row', whose numbers name the rows; --keep row (keep=['row']) keeps it",
        "dropped the column 'card', whose numbers name the rows",
        "dropped the column 'code': nearly all of its 150 values differ, as in an identifier",
        "read the text of column 'born' as dates, %d.%m.%Y",
        "read the amounts of column 'income' as numbers",
        "read the amounts of column 'share' as numbers",
        "most frequent words of column 'comment'",
        "in 1 column with its median: visits",
    ):
        assert sentence in said
    run("evaluate", out)
    run("evaluate", out, "--data", later)
    run("embed", out, "--data", later, "--out", str(folder / "z.csv"), "--keep", "code")
    run("report", out)
    run("export", out, "--out", str(folder / "z.onnx"))
    run("embed", out, "--data", later, "--out", str(folder / "z.npy"))
    _check_graph(folder / "z.onnx", load_run(out).read(later, labelled=False), np.load(folder / "z.npy"))
    embedded = pd.read_csv(folder / "z.csv")
    assert len(embedded) == 60
    assert {"code", "income", "when", "when:year_sin", "when:day_cos", "comment~slow"} <= set(embedded)
    assert embedded["income"].std() == pytest.approx(1, abs=0.3)


def _check_graph(path: Path, data: Dataset, expected: np.ndarray) -> None:
    """Compare an exported graph, which takes the features of dates and text as ``x``, with what pinoise embeds."""
    session = onnxruntime.InferenceSession(path)
    assert json.loads(session.get_modelmeta().custom_metadata_map["features"]) == list(data.feature_names or ())
    (found,) = session.run(["embedding"], {"x": np.asarray(data.train.x, dtype=np.float64)})
    assert (np.abs(found - expected) <= 1e-5 * np.abs(expected).max(axis=1, keepdims=True)).all()


def test_a_comparison_reads_text_as_training_does(folder: Path) -> None:
    data = ["--data", str(folder / "train.csv"), "--label", "bought"]
    asked = ["compare", *data, "--methods", "raw", "--seeds", "1", "--epochs", "1", "--fresh", "--json"]
    without, read = CliRunner().invoke(app, asked), CliRunner().invoke(app, [*asked, "--text", "comment"])
    assert "--text comment (text=['comment']) makes features of its words" in without.stderr
    assert "most frequent words of column 'comment'" in read.stderr
    few = [json.loads(result.stdout)["rows"][0]["few"] for result in (without, read)]
    assert few[1] > few[0] + 0.1  # the words tell the classes


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.filterwarnings("ignore::pinoise.estimator.HealthWarning")
def test_a_pipeline_takes_the_frame_and_a_grid_searches_it_in_two_processes(table: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(table).replace("", None)
    frame["when"] = pd.to_datetime(frame["when"])
    X, y = frame.drop(columns="bought"), frame["bought"]
    embedder = PiNDA(4, hidden=16, epochs=1, text=["comment"], random_state=0)
    grid = GridSearchCV(
        make_pipeline(embedder, LogisticRegression(max_iter=1000)),
        {"pinda__missing": ["median", "mean"]},
        cv=2,
        n_jobs=2,
    ).fit(X, y)
    assert grid.best_score_ > 0.8
    fitted = grid.best_estimator_[0]
    assert any("most frequent words of column 'comment'" in sentence for sentence in fitted.notes_)
    few = y.where(np.arange(len(y)) < 20, None)
    assert PiNDAClassifier(embedder, random_state=0).fit(X, few).score(X[50:], y[50:]) > 0.6
