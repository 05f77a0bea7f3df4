"""Every example of the repository runs and prints what it says, and every configuration trains."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pinoise.experiments.recipes import RECIPES, SUITES
from pinoise.training.config import merge, override, parse_settings, read_yaml

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
IMAGES = EXAMPLES[0].parent / "images.yaml"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_the_configuration_for_images_is_what_the_suite_measures() -> None:
    suite = SUITES["images"]
    steps = -(-suite.steps // (suite.rows // 128))
    shared = override(suite.settings, [("data.rows", suite.rows), ("training.epochs", steps)])
    measured = merge(merge(RECIPES["aug-pinda"].settings or {}, shared), {"data": {"source": "fashion_mnist"}})
    assert parse_settings(read_yaml(IMAGES)) == parse_settings(measured)
