"""The suites of `benchmarks/suite.py`: labelled sets that are here, cut to a size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pinoise.experiments.recipes import DEFAULT_METHODS, IMAGE_METHODS, choose_methods
from pinoise.paper.catalogue import entry

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import suite
from suite import SUITES, compared

BUNDLED = ("digits", "wine", "breast_cancer")


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_has_known_methods_and_sets_of_the_catalogue_with_labels_and_test_rows(name: str) -> None:
    sources, methods = SUITES[name].sources, SUITES[name].methods
    assert len(set(sources)) == len(sources)
    assert all(entry(source).classes >= 2 and min(entry(source).rows) > 0 for source in sources)
    assert choose_methods(methods) == list(methods)
    for usual in (DEFAULT_METHODS, IMAGE_METHODS):
        assert choose_methods(usual) == list(usual)


def test_half_of_the_vectors_decide_choices_and_the_other_half_is_held_out() -> None:
    vectors = SUITES["vectors"]
    assert len(vectors.chosen_on) == len(vectors.held_out) == 15
    assert sorted((*vectors.chosen_on, *vectors.held_out)) == sorted(vectors.sources)


def test_a_set_is_present_when_all_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    first, second = entry("epsilon_sample").files
    (tmp_path / first.name).touch()
    assert SUITES["vectors"].present() == BUNDLED
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / second.name).touch()
    assert SUITES["vectors"].present() == (*BUNDLED, "epsilon_sample")


def test_every_set_that_is_here_is_compared_with_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINOISE_DATA", raising=False)
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path))
    small = {"encoder": {"hidden": 8, "out_features": 4}, "training": {"batch_size": 32}}
    quick = SUITES["vectors"]._replace(sources=("digits", "hapt561", "wine"), settings=small, steps=4, rows=64)
    monkeypatch.setitem(suite.SUITES, "vectors", quick)
    found = compared("vectors", ["fixed"], seeds=1)
    assert [(row["data"], row["method"]) for row in found["rows"]] == [
        (data, method) for data in ("digits", "wine") for method in ("raw", "untrained", "fixed")
    ]
    assert {row["lr"] for row in found["rows"]} == {None}  # a score that the suite does not compute
    assert found["held_out"]["ranks"]["few"].keys() == {"raw", "fixed"}  # on wine, as digits decide choices
    assert found["verdicts"].keys() == {"digits", "wine"}
