"""Two real processes embed together: every row once, in order, and the first one scores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pinoise.evaluation.sharing import ALONE, Team
from tests.training.pool import Everywhere, pool_of_two
from torch import Tensor, distributed, nn

from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.experiments.evaluated import Evaluation, evaluate_run, help_evaluate
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.load import load_run
from pinoise.training.run import run_training


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Everywhere]:
    with pool_of_two() as call:
        yield call


class Counted:
    """Rows that hold their own number, and remember which were read."""

    def __init__(self, n: int) -> None:
        self.n, self.read = n, list[int]()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Tensor) -> Tensor:
        self.read += rows.tolist()
        return rows[:, None].float()


def shared(n: int) -> tuple[np.ndarray, set[int]]:
    rows = Counted(n)
    z = Team(distributed.get_rank(), 2).embed(nn.Identity(), rows)
    return z, set(rows.read)


@pytest.mark.parametrize("n", [1, 2, 9, 10_001])
def test_two_processes_embed_every_row_once_and_the_first_has_them_in_order(everywhere: Everywhere, n: int) -> None:
    (whole, read), (_, read_by_other) = everywhere(shared, n)
    assert whole[:, 0].tolist() == list(range(n))
    assert read | read_by_other == set(range(n))
    if n > 2:  # both look at the first row of their share, to know its width
        assert not read & read_by_other - {0}


def test_one_process_embeds_as_ever() -> None:
    x = torch.randn(7, 3)
    np.testing.assert_array_equal(ALONE.embed(nn.Identity(), x), embed(nn.Identity(), x))


def test_a_row_that_is_not_finite_has_its_own_number() -> None:
    x = torch.zeros(10, 1)
    x[8] = torch.nan
    with pytest.raises(UserError, match=r"row 8 of the output is not finite \(1 such rows in all\)"):
        embed(nn.Identity(), x, only=Team(1, 2).share(10))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    changes = {"epochs": 1, "batch_size": 64, "device": "cpu", "information_draws": 0}
    settings = parse_settings({"data": {"source": "wine"}, "encoder": {"hidden": 16}, "training": changes})
    run_training(path, settings, reporter=Quiet())
    return path


def scored(path: Path) -> Evaluation | None:
    team = Team(distributed.get_rank(), 2)
    if team.is_first:
        return evaluate_run(load_run(path), team=team)
    help_evaluate(load_run(path), team=team)
    return None


def test_the_first_process_scores_what_two_have_embedded(everywhere: Everywhere, run: Path) -> None:
    together, nothing = everywhere(scored, run)
    assert nothing is None
    alone = evaluate_run(load_run(run))
    assert together.scores.keys() == alone.scores.keys() == {"raw", "untrained", "learned"}
    for name, found in alone.scores.items():
        assert together.scores[name].few_draws == pytest.approx(found.few_draws, abs=0.03)
        assert together.scores[name].knn == pytest.approx(found.knn, abs=0.03)


def test_the_command_embeds_in_two_processes_as_in_one(run: Path, pinoise: Callable[..., Any], tmp_path: Path) -> None:
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    said = pinoise("embed", run, "--data", "wine", "--out", one).out
    command = [
        sys.executable,
        "-m",
        "pinoise",
        "embed",
        str(run),
        "--data",
        "wine",
        "--out",
        str(two),
        "--devices",
        "2",
    ]
    both = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert both.stdout == said.replace("one.npz", "two.npz")
    parts, together = np.load(one), np.load(two)
    for name in parts:
        np.testing.assert_allclose(together[name], parts[name], rtol=1e-4, atol=1e-5)
