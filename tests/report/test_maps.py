"""A map shows the many, and says of the few."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from pinoise.report.maps import by_pca, frame


def test_a_few_far_rows_do_not_turn_the_components() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5)) * [5, 3, 1, 1, 1]
    far = np.zeros((2, 5))
    far[:, 4] = 500, 700
    alone = np.abs(PCA(2).fit_transform(rows))
    beside = np.abs(by_pca(np.concatenate([rows, far]))[:200])
    assert all(np.corrcoef(alone[:, k], beside[:, k])[0, 1] > 0.98 for k in (0, 1))


def test_a_frame_holds_all_points_but_those_far_away() -> None:
    points = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    x, _, outside = frame(points)
    assert outside == 0
    assert x[0] < points[:, 0].min() < points[:, 0].max() < x[1] < 1.2
    points[:3] = [[90, 0], [0, -90], [-90, 90]]
    cut = frame(points)
    assert cut.outside == 3
    assert -3 < cut.x[0] < cut.x[1] < 3
    assert -3 < cut.y[0] < cut.y[1] < 3
    assert frame(np.zeros((4, 2))).x == (-1.0, 1.0)
