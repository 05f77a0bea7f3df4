"""One format: what the estimators save and what the command trains is read by each of them, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from pinoise import PiNDA, PiNDAClassifier, UserError, load_run

Command = Callable[..., Any]
TINY = ("--epochs", "2", "--set", "encoder.hidden=8", "--set", "encoder.out_features=4", "--device", "cpu")
SMALL: dict[str, Any] = {"n_components": 4, "hidden": 8, "epochs": 2, "batch_size": 30, "random_state": 0}
pytestmark = [pytest.mark.filterwarnings("ignore::pinoise.HealthWarning"), pytest.mark.usefixtures("few_trees")]

FRAMES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "mixed": lambda random: pd.DataFrame(
        {
            "age": np.where(np.arange(60) % 11, random.normal(40, 10, 60), np.nan),
            "town": random.choice(["Rome", "Oslo", "Bonn"], 60),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) * 5 % 47, unit="D"),
        }
    ),
    "numbers": lambda random: pd.DataFrame(random.normal(size=(60, 3)), columns=["a", "b", "c"]),
}
WRITERS = ("PiNDA", "PiNDAClassifier", "train", "train --target")


@pytest.fixture(params=FRAMES)
def frame(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A frame, which stands in new.csv too, and in known.csv with a few labels."""
    monkeypatch.chdir(tmp_path)
    frame = FRAMES[request.param](np.random.default_rng(0))
    frame.to_csv("new.csv", index=False)
    label = np.where(frame.iloc[:, 0] > frame.iloc[:, 0].median(), "high", "low")
    frame.assign(label=np.where(np.arange(60) < 20, label, "")).to_csv("known.csv", index=False)
    return frame


def labels() -> Any:
    known = pd.read_csv("known.csv")["label"]
    return np.where(known.isna(), None, known)


@pytest.mark.parametrize("writer", WRITERS)
def test_what_one_saves_the_others_read(writer: str, frame: pd.DataFrame, pinoise: Command) -> None:
    estimator: Any = None
    if writer == "PiNDA":
        estimator = PiNDA(**SMALL).fit(frame)
    elif writer == "PiNDAClassifier":
        estimator = PiNDAClassifier(PiNDA(**SMALL), random_state=0).fit(frame, labels())
    else:
        option = "--target" if "target" in writer else "--drop"
        trained = pinoise("train", "--data", "known.csv", option, "label", "--out", "model", *TINY)
        assert trained.code == 0, trained.err
    if estimator is not None:
        estimator.save("model")

    model, transformer = load_run("model"), PiNDA.load("model")
    x = model.read("new.csv", labelled=False).train.x
    expected = model.embed(x)
    np.testing.assert_array_equal(transformer.transform(frame), expected)
    embedded = pinoise("embed", "model", "--data", "new.csv", "--out", "z.npy")
    assert embedded.code == 0, embedded.err
    np.testing.assert_allclose(np.load("z.npy"), expected, atol=1e-4)
    np.testing.assert_allclose(
        model.augment(x, seed=3), transformer.model_.augment(transformer._samples(frame), seed=3), atol=1e-9
    )
    np.testing.assert_array_equal(transformer.augment(frame).isna(), frame.isna())
    assert pinoise("export", "model", "--out", "model.onnx").code == 0
    fitted = getattr(estimator, "embedding_", None) if isinstance(estimator, PiNDAClassifier) else estimator
    if fitted is not None:
        np.testing.assert_array_equal(fitted.transform(frame), expected)
        pd.testing.assert_frame_equal(fitted.augment(frame, random_state=1), transformer.augment(frame, random_state=1))
        np.testing.assert_array_equal(fitted.noise_scale(frame), transformer.noise_scale(frame))
        np.testing.assert_equal(transformer.history_, fitted.history_)
        assert (transformer.flags_, transformer.notes_) == (fitted.flags_, fitted.notes_)

    if writer in ("PiNDA", "train"):
        with pytest.raises(UserError, match=r"model has no classifier: train with --target COLUMN"):
            PiNDAClassifier.load("model")
        return
    classifier = PiNDAClassifier.load("model")
    p = classifier.predict_proba(frame)
    np.testing.assert_array_equal(model.predict(x), p)
    assert list(classifier.classes_) == ["high", "low"]
    predicted = pinoise("predict", "model", "--data", "new.csv", "--out", "p.csv")
    assert predicted.code == 0, predicted.err
    written = pd.read_csv("p.csv")
    np.testing.assert_allclose(written[["p=high", "p=low"]], p)
    np.testing.assert_array_equal(written["class"], classifier.predict(frame))
    if isinstance(estimator, PiNDAClassifier):
        np.testing.assert_array_equal(estimator.predict_proba(frame), p)
        np.testing.assert_equal(classifier.cv_results_, estimator.cv_results_)
        assert list(map(str, classifier.chosen_)) == list(map(str, estimator.chosen_))


def test_a_model_is_saved_from_a_run_and_again_from_that(frame: pd.DataFrame, pinoise: Command) -> None:
    assert pinoise("train", "--data", "known.csv", "--drop", "label", "--out", "run", *TINY).code == 0
    expected = load_run("run").embed(x := load_run("run").read("new.csv").train.x)
    load_run("run").save("copy")
    PiNDA.load("copy").save("copy")  # which it replaces
    again = load_run("copy")
    assert again.settings == load_run("run").settings
    np.testing.assert_array_equal(again.embed(x), expected)
    assert len(again.own_data().train) == 60
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []
    with pytest.raises(UserError, match=r"^run is there already, and is no saved model: choose another folder\.$"):
        again.save("run")  # whose checkpoints would go with it
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("keep")
    for taken in ("mine", "new.csv"):
        with pytest.raises(UserError, match="is there already, and is no saved model"):
            again.save(taken)


def test_a_model_fitted_in_python_says_that_its_rows_are_in_no_file(tmp_path: Path, pinoise: Command) -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    PiNDA(**SMALL).fit(x).save(tmp_path / "model")
    assert (
        "was fitted in Python, on samples that no file here names" in pinoise("evaluate", tmp_path / "model").sentence
    )
    assert "in memory" in pinoise("train", "--resume", tmp_path / "model").sentence
    np.save(tmp_path / "x.npy", x)
    assert pinoise("embed", tmp_path / "model", "--data", tmp_path / "x.npy", "--out", tmp_path / "z.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), PiNDA.load(tmp_path / "model").transform(x), atol=1e-5)
    with pytest.raises(UserError, match="nowhere is not a folder: give the folder of a run"):
        PiNDA.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 4, "patience": 3},
        {"method": "moco", "temperature": 0.3, "augmentations": ("scarf", {"name": "dacl", "alpha": 0.8})},
        {"objective": "paper", "penalty": 0.1, "mean": "learned", "generator": {"name": "mlp", "hidden": 5}},
        {"scaling": "rows", "embedding": "learned", "covariance": "low-rank", "amplitude": np.float64(0.7)},
    ],
)
def test_the_parameters_of_a_loaded_estimator_are_those_of_its_settings(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    x = sp.csr_array(np.random.default_rng(0).poisson(0.3, size=(80, 6)).astype(float))
    fitted = PiNDA(**{**SMALL, **changes}).fit(x)
    fitted.save(tmp_path / "model")
    loaded = PiNDA.load(tmp_path / "model")
    again = clone(loaded).set_params(random_state=0).fit(x)
    assert again.model_.settings == fitted.model_.settings
    np.testing.assert_array_equal(again.transform(x), fitted.transform(x))
