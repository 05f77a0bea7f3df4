"""Committed figures of speed are of today's code: their operations, which no machine changes, are counted again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "benchmarks" / "results" / "bench.json"
sys.path.insert(0, str(ROOT / "benchmarks"))

from speed import steps, tables  # noqa: E402
from speed.aims import AIMS, PAPER, verdicts  # noqa: E402
from speed.processes import Model  # noqa: E402


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("features", steps.FEATURES)
def test_operations_of_the_committed_steps_are_those_of_the_code(features: int, result: dict[str, Any]) -> None:
    rows = result["measurements"]["steps"]["steps"]
    committed = {row["variant"]: row["operations"] for row in rows if row["features"] == features}
    assert committed == {variant: steps.count_operations(variant, features) for variant in steps.VARIANTS}


def test_operations_of_a_step_leave_out_the_search_for_neighbours() -> None:
    (d, m), h = (561, 2 * steps.BATCH), steps.WIDTHS
    layers = [d * h[0], h[0] * h[1], h[1] * h[2], h[2] * h[3], h[3] * h[4]]
    products = 3 * sum(layers) - layers[0] + 3 * m * h[4]  # forward and for both gradients, none for the samples
    assert steps.count_operations(steps.RANDOM, d) == 2 * m * products == steps.make_products(d)[1]
    # The default also needs the gradient of its noisy views. A search in the bank would be another 4.7e9 operations.
    assert steps.count_operations("the default", d) == 2 * m * (products + layers[0])


def test_every_aim_was_measured_and_the_document_says_whether_it_is_met(result: dict[str, Any]) -> None:
    ratios = {name: ratio for each in result["measurements"].values() for name, ratio in each["ratios"].items()}
    assert verdicts(ratios).keys() == AIMS.keys()
    assert PAPER.keys() <= ratios.keys()
    shown = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    for line in [*tables.ratios(result), *tables.operations(result), *tables.profile(result)]:
        assert line in shown
    cluster = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    for line in [*tables.checked(result), *tables.extrapolated(result)]:
        assert line in cluster


def test_results_say_where_and_when_they_were_made(result: dict[str, Any]) -> None:
    assert {"date", "cpu", "cpu_count", "packages"} <= result["environment"].keys()
    assert result["commit"] != "unknown"
    assert str(Path.home()) not in RESULT.read_text(encoding="utf-8")


def test_the_model_of_a_step_adds_work_and_what_a_ring_exchanges() -> None:
    model = Model(row=1e-4, pair=1e-8, fixed=1e-3)
    assert model.seconds(1, 100, bandwidth=1e9, latency=1e-3) == pytest.approx(1e-2 + 1e-4 + 1e-3)
    free = model.seconds(4, 100, bandwidth=1e30, latency=0)
    assert free == pytest.approx((1e-2 + 1e-4) / 4 + 1e-3)
    slow = model.seconds(4, 100, bandwidth=1e6, latency=0) - free
    exchanged = 3 / 4 * (2 * 4 * result_weights() + 3 * 4 * 200 * 128)
    assert slow == pytest.approx(exchanged / 1e6)


def result_weights() -> int:
    """The weights of the default encoder and head, counted by torch."""
    from pinoise.networks import MLPEncoder, ProjectionHead

    parts = (MLPEncoder((561,)), ProjectionHead(256))
    return sum(weight.numel() for part in parts for weight in part.parameters())
