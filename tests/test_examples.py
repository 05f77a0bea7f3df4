"""Every example of the repository runs and prints what it says, and every configuration trains."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from pinoise.experiments.recipes import RECIPES
from pinoise.training.config import merge, override, parse_settings, read_yaml

ROOT = Path(__file__).parent.parent

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS = {"lightning_module": ["pytorch_lightning"], "lightly_simclr": ["lightly", "torchvision"], "spark": ["pyspark"]}
ON_REAL_DATA = {"sensor_windows", "frozen_network"}
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
SPREAD = re.compile(rf"(?<=± ){NUMBER.pattern}")
IMAGES = ROOT / "examples" / "images.yaml"


def quoted() -> dict[str, str]:
    """What the recipes say that every example prints."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    parts = re.findall(r"\]\(\.\./examples/(\w+)\.py\).*?^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return dict(parts)


def assert_prints(printed: str, says: str) -> None:
    """Fail unless the words are the same, and the numbers as near as another CPU's rounding leaves them.

    It moves one draw of ten by some points, and the spread over draws with it more than their mean.
    """
    assert NUMBER.sub("#", printed).strip() == NUMBER.sub("#", says).strip()
    for pattern, near in ((SPREAD, 0.3), (NUMBER, 0.05)):
        found, expected = ([float(number) for number in pattern.findall(text)] for text in (printed, says))
        assert found == pytest.approx(expected, rel=near, abs=0.06)
        printed, says = (SPREAD.sub("", text) for text in (printed, says))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_prints_what_the_recipes_quote(
    path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    if missing := [name for name in NEEDS.get(path.stem, ()) if find_spec(name) is None]:
        pytest.skip(f"needs {missing[0]}, which cannot be imported here")
    if path.stem in ON_REAL_DATA:
        request.getfixturevalue("real_data")
    runpy.run_path(str(path), run_name="__main__")
    assert_prints(capsys.readouterr().out, quoted()[path.stem])


def test_a_quotation_may_differ_in_rounding_alone() -> None:
    assert_prints("raw: 87.5 %, flags []\n", "raw: 88.0 %, flags []")
    for other in ("raw: 97.5 %, flags []", "learned: 87.5 %, flags []", "raw: 87.5 %, flags []\nmore: 1"):
        with pytest.raises(AssertionError):
            assert_prints("raw: 87.5 %, flags []", other)


def test_the_examples_with_noise_beside_something_show_what_it_adds() -> None:
    told = quoted()
    shifts, both, _ = (float(line.split(": ")[1].split()[0]) for line in told["beside_augmentations"].splitlines())
    assert both > shifts


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_the_configuration_for_images_is_what_the_suite_measures() -> None:
    suite = tomllib.loads((ROOT / "benchmarks" / "suites.toml").read_text(encoding="utf-8"))["images"]
    steps = -(-suite["steps"] // (suite["rows"] // 128))
    shared = override(suite["settings"], [("data.rows", suite["rows"]), ("training.epochs", steps)])
    measured = merge(merge(RECIPES["aug-pinda"].settings or {}, shared), {"data": {"source": "fashion_mnist"}})
    assert parse_settings(read_yaml(IMAGES)) == parse_settings(measured)
