from __future__ import annotations

import json

import numpy as np

from pinoise.choices import SCORES
from pinoise.experiments.results import Cell, summarise


def test_a_cell_goes_through_json_unchanged() -> None:
    cell = Cell("toy", "pinda", 3, "learned", 0.1, 0.2, 0.3, 0.4, 1.5, ("shrink", "parking"), (0.3, 0.5), 0.6)
    assert Cell.from_dict(json.loads(json.dumps(cell.as_dict()))) == cell
    absent = Cell("toy", "forest", 3, "learned", None, None, None, 0.4, 1.5)
    assert Cell.from_dict(json.loads(json.dumps(absent.as_dict()))) == absent


def test_a_score_that_a_seed_lacks_is_absent_from_the_summary() -> None:
    cells = [Cell("toy", "forest", seed, "joined", None, None, lr, 0.5, 1.0) for seed, lr in ((0, 0.5), (1, None))]
    (line,) = summarise(cells)
    assert line.means == {"few": 50.0}
    assert line.stds == {"few": 0.0}


def test_summaries_are_numpys_mean_and_standard_deviation() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((2, 3, 5))  # methods, seeds, scores
    cells = []
    for seed in range(3):
        for i, method in enumerate(["raw", "fixed"]):
            knn, sr, lr, few, other = map(float, values[i, seed])
            flags = ("shrink",) if seed == 1 else ()
            cells.append(Cell("toy", method, seed, "joined", knn, sr, lr, few, float(seed), flags, (), other))
    lines = summarise(cells)
    assert [line.method for line in lines] == ["raw", "fixed"]
    for i, line in enumerate(lines):
        np.testing.assert_allclose([line.means[name] for name in SCORES], 100 * values[i].mean(0))
        np.testing.assert_allclose([line.stds[name] for name in SCORES], 100 * values[i].std(0))
        assert line.seconds == 1.0
        assert line.flags == ("shrink",)
