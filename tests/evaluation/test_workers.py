"""Two real processes embed together: every row once, in order, as one does, and none outlives the first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.evaluation import embed
from pinoise.evaluation.workers import mapped
from pinoise.training.callbacks import Quiet
from pinoise.training.config import parse_settings
from pinoise.training.run import run_training


class Numbered:
    """Rows that hold their own number, beside the process that reads them."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Tensor) -> Tensor:
        return torch.stack([rows.double(), torch.full(rows.shape, os.getpid())], dim=1)


@pytest.mark.processes
@pytest.mark.parametrize("n", [1, 10_001])
def test_two_processes_embed_every_row_once_and_in_order(n: int) -> None:
    whole = embed(nn.Identity(), Numbered(n), processes=2, dtype=torch.float64)
    assert whole[:, 0].tolist() == list(range(n))
    one = n // 2  # rows of the first share
    readers = [set(share.tolist()) for share in (whole[:one, 1], whole[one:, 1])]
    assert os.getpid() not in set.union(*readers) or n < 2
    assert all(len(share) <= 1 for share in readers)


@pytest.mark.processes
def test_a_row_that_is_not_finite_has_its_own_number() -> None:
    x = torch.zeros(10, 1)
    x[8] = torch.nan
    with pytest.raises(UserError, match=r"row 8 of the output is not finite \(1 such rows in all\)"):
        embed(nn.Identity(), x, processes=2)


def noted(folder: Path, seconds: float) -> float:
    """Leave a file named after this process, and work for a while."""
    (folder / str(os.getpid())).touch()
    time.sleep(seconds)
    return seconds


def there(folder: Path, *, number: int, process: subprocess.Popen[str] | None = None) -> list[int]:
    """Return the processes that have begun, once there are so many."""
    until = time.monotonic() + 60
    while len(found := [int(path.name) for path in folder.iterdir()]) < number:
        assert time.monotonic() < until
        assert process is None or process.poll() is None
        time.sleep(0.01)
    return found


def await_end(processes: list[int]) -> None:
    """Return when none of the processes is left. They are children of nobody who waits for them."""
    until = time.monotonic() + 20
    while any(_runs(process) for process in processes):
        assert time.monotonic() < until, processes
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.processes
def test_a_worker_that_was_killed_is_one_sentence(tmp_path: Path) -> None:
    def killed(results: Any) -> None:
        next(results)
        os.kill(there(tmp_path, number=2)[0], signal.SIGKILL)
        next(results)

    results = mapped(partial(noted, tmp_path), [0.0, 600.0, 600.0], processes=2)
    with pytest.raises(UserError, match=r"^a process ended before its work was done: give the command again\.$"):
        killed(results)
    await_end([int(path.name) for path in tmp_path.iterdir()])


MAP = """
import sys
from functools import partial
from pathlib import Path
from pinoise.evaluation.workers import mapped
from tests.evaluation.test_workers import noted
try:
    print(list(mapped(partial(noted, Path(sys.argv[1])), [600.0, 600.0], processes=2)))
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_first_process(number: signal.Signals, tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", MAP, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    workers = there(tmp_path, number=2, process=first)
    first.send_signal(number)
    out, _ = first.communicate(timeout=60)
    assert out == ("stopped\n" if number == signal.SIGINT else "")
    await_end(workers)


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_leave_requests_to_stop_to_the_first_process(tmp_path: Path) -> None:
    results = mapped(partial(noted, tmp_path), [0.0, 600.0, 600.0], processes=2)
    next(results)
    for worker in there(tmp_path, number=2):
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(worker, number)
    assert all(map(_runs, there(tmp_path, number=2)))
    assert not {signal.SIGINT, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    del results
    await_end(there(tmp_path, number=2))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    changes = {"epochs": 1, "batch_size": 64, "device": "cpu", "information_draws": 0}
    settings = parse_settings({"data": {"source": "wine"}, "encoder": {"hidden": 16}, "training": changes})
    run_training(path, settings, reporter=Quiet())
    return path


@pytest.mark.processes
@pytest.mark.parametrize("launcher", [(), ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")])
def test_the_command_embeds_in_two_processes_as_in_one(
    launcher: tuple[str, ...], run: Path, pinoise: Callable[..., Any], tmp_path: Path
) -> None:
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    said = pinoise("embed", run, "--data", "wine", "--out", one).out
    asked = () if launcher else ("--devices", "2")
    verb = ("-m", "pinoise", "embed", str(run), "--data", "wine", "--out", str(two), *asked)
    command = [sys.executable, *launcher, *verb]
    both = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert both.stdout == said.replace("one.npz", "two.npz")
    parts, together = np.load(one), np.load(two)
    for name in parts:
        np.testing.assert_allclose(together[name], parts[name], rtol=1e-4, atol=1e-5)
