"""Reports of runs as files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pinoise.errors import UserError
from pinoise.experiments.evaluated import evaluate_run
from pinoise.model import Model, load_run
from pinoise.report import write_report
from pinoise.report.collect import collect
from pinoise.training.running import read_metrics

Train = Any


def copied(run: Model, folder: Path, name: str = "copy") -> Model:
    return load_run(shutil.copytree(run.path, folder / name))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").rpartition("</head>")[2]


def of_other_data(run: Model) -> Model:
    return replace(run, record=run.record.model_copy(update={"fingerprint": "another"}))


def test_a_report_lands_in_the_runs_own_folder(table_run: Model, tmp_path: Path) -> None:
    run = copied(table_run, tmp_path)
    before = {path.name for path in run.path.iterdir()}
    report = write_report([run])
    assert {path.name for path in run.path.iterdir()} - before == {"report.html"}
    assert report.page == run.path / "report.html"
    last = read_metrics(run.path / "metrics.csv")[-1]
    page = text_of(report.page)
    for number in (last.loss, last.metrics["sigma_median"], last.metrics["information"]):
        assert f"<td>{number:.4g}</td>" in page
    assert "32 training rows of 3, 8 held out" in page
    assert "has not been evaluated" in page
    assert str(run.path.parent) not in page  # no folders of somebody's machine


def test_the_verdict_comes_first_and_health_speaks_of_training_alone(table_run: Model, tmp_path: Path) -> None:
    run = copied(table_run, tmp_path)
    found = evaluate_run(run)
    raw, learned = found.scores["raw"], found.scores["learned"]
    draws = [0.6, 0.62, 0.58]
    worse = learned.model_copy(update={"few_draws": [value - 0.11 for value in draws]})
    scores = {**found.scores, "raw": raw.model_copy(update={"few_draws": draws}), "learned": worse}
    page = text_of(write_report([run], evaluation=lambda _: found.model_copy(update={"scores": scores})).page)
    assert '<div class="answer worse">' in page
    sentences = [
        "Worse than raw features: with 10 labels per class, accuracy is 11.0 points lower",
        ">Scores<",
        ">Map<",
    ]
    sentences += [
        ">Training<",
        "Flags speak of training alone",
        "The noise",
        "Data and settings",
        "pinoise train --config",
    ]
    places = [page.index(sentence) for sentence in sentences]
    assert places == sorted(places)
    stored = text_of(write_report([run]).page)
    assert "Not known yet: this run, as it is now, has not been evaluated." in stored


def test_a_report_is_the_same_when_made_again(colour_run: Model, tmp_path: Path) -> None:
    first, again = (write_report([colour_run], folder=tmp_path / name, samples=2, seed=3) for name in ("a", "b"))
    other = write_report([colour_run], folder=tmp_path / "c", samples=2, seed=4)
    assert first.page.read_bytes() == again.page.read_bytes()
    assert first.pictures["noise"].read_bytes() != other.pictures["noise"].read_bytes()


def test_runs_on_the_same_pictures_are_set_side_by_side(
    train: Train, files: Path, colour_run: Model, tmp_path: Path
) -> None:
    uniform = train(files / "colour.npz", objective="paper", noise={"distribution": "uniform"})
    plain = train(files / "colour.npz", views={"noise": "gaussian"})
    runs = [copied(run, tmp_path, name) for run, name in ((colour_run, "mu"), (uniform, "uniform"), (plain, "plain"))]
    report = write_report(runs, folder=tmp_path / "out", samples=3)
    assert list(report.pictures) == ["noise", "comparison"]
    assert report.notes == ["plain has no learned noise"]
    page = text_of(report.page)
    assert "mu: learned μ; mu: σ, μ learned; uniform: w, uniform." in page
    assert "none learned (views.noise is gaussian)" in page
    with Image.open(report.pictures["comparison"]) as image, Image.open(report.pictures["noise"]) as alone:
        assert image.height < alone.height  # four rows and five


def test_runs_on_the_same_table_are_compared_feature_by_feature(
    train: Train, files: Path, table_run: Model, tmp_path: Path
) -> None:
    other = train(files / "table.csv", data={"label": "group"}, objective="paper")
    report = write_report([table_run, other], folder=tmp_path)
    assert report.pictures == {}
    page = text_of(report.page)
    table = page[page.index("Runs side by side") : page.index("of the embeddings, in percent")]
    found = [collect(run, data=table_run.own_data()).relative_sigma.mean(axis=0) for run in (table_run, other)]
    assert all(f">{value:.4g}</td>" in table for means in found for value in means)


def test_runs_on_different_data_are_not_compared(table_run: Model, colour_run: Model, tmp_path: Path) -> None:
    sentence = (
        r"run was trained on 32 rows of 3 from .*table\.csv and .*run on 32 rows of 8 × 6 × 3 from .*colour\.npz: "
        "only runs trained on the same rows"
    )
    with pytest.raises(UserError, match=sentence):
        write_report([table_run, colour_run], folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_differs_between_runs_on_one_file_is_named(
    train: Train, files: Path, table_run: Model, tmp_path: Path
) -> None:
    fewer = train(files / "table.csv", data={"label": "group", "rows": 20})
    with pytest.raises(UserError, match=r"run was trained on 32 rows of 3 and [^ ]*run on 20 rows of 3: only runs"):
        write_report([table_run, fewer], folder=tmp_path)
    with pytest.raises(UserError, match=r"table\.csv had other values when [^ ]*run was trained than when [^ ]* was: "):
        write_report([table_run, of_other_data(table_run)], folder=tmp_path)


def test_a_run_without_learned_noise_still_has_a_report(train: Train, files: Path) -> None:
    run = train(files / "table.csv", data={"label": "group"}, views={"noise": "gaussian"})
    report = write_report([run])
    assert "This run has no learned noise" in text_of(report.page)


def test_flags_are_those_of_training(train: Train, files: Path) -> None:
    run = train(files / "table.csv", objective="paper", noise={"initial_scale": 0.001})
    report = write_report([run])
    assert "shrink" in [flag.name for flag in report.flags]
    assert "<strong>shrink</strong>: the learned noise collapsed" in text_of(report.page)


def test_what_a_folder_has_lost_is_told(table_run: Model, tmp_path: Path) -> None:
    run = copied(table_run, tmp_path)
    shutil.rmtree(run.path / "checkpoints")
    assert "Unknown: " in text_of(write_report([run]).page)
    (run.path / "metrics.csv").unlink()
    (run.path / "environment.json").unlink()
    assert "there are no curves" in text_of(write_report([load_run(run.path)]).page)
    (run.path / "evaluation.json").write_text('{"scores": 3}')
    with pytest.raises(UserError, match=r"evaluation\.json is not what 'pinoise evaluate' writes"):
        write_report([run])


def test_changed_data_is_refused(table_run: Model) -> None:
    with pytest.raises(UserError, match="has changed since"):
        write_report([of_other_data(table_run)])


def test_a_file_is_no_place_for_a_report(table_run: Model, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for target in (file, file / "below"):
        with pytest.raises(UserError, match=rf"cannot be written to {target}: {file} is a file"):
            write_report([table_run], folder=target)
