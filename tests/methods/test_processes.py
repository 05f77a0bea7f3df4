"""Two real processes on the CPU through gloo, whose memories must stay equal; this file is also what they run."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed, nn

from pinoise.methods import DINO, Method, MoCo
from pinoise.methods.gathering import gather, world_size
from pinoise.networks import ProjectionHead
from pinoise.networks.mlp import PrototypeHead
from pinoise.views import Batch

PROCESSES, STEPS, SAMPLES, QUEUE = 2, 5, 3, 17


def methods() -> dict[str, Method]:
    torch.manual_seed(0)
    encoder, head = nn.Linear(4, 5), ProjectionHead(5, hidden=8, out_features=6)
    return {
        "moco": MoCo(encoder, head, queue=QUEUE),
        "dino": DINO(encoder, PrototypeHead(5, hidden=8, bottleneck=4, prototypes=7)),
    }


def share(step: int, rank: int) -> list[Batch]:
    """Two views of the samples of one process; no row is in two processes."""
    generator = torch.Generator().manual_seed(step)
    rows = torch.randperm(20, generator=generator)[rank * SAMPLES : (rank + 1) * SAMPLES]
    generator.manual_seed(100 * step + rank)
    return [Batch(torch.randn(SAMPLES, 4, generator=generator), rows) for _ in range(2)]


def by_hand() -> dict[str, Tensor]:
    """What one process makes of the shares of all, one key, row and output at a time."""
    built = methods()
    moco, dino = built["moco"], built["dino"]
    assert isinstance(moco, MoCo)
    assert isinstance(dino, DINO)
    keys, owners = list(moco.queue), [-1] * QUEUE
    arrived = 0
    for step in range(STEPS):
        outputs = []
        for side, rank in itertools.product(range(2), range(PROCESSES)):  # as one process would with the joint batch
            view = share(step, rank)[side]
            for x, row in zip(view.x, view.rows.tolist(), strict=True):
                key = moco.head(moco.encoder(x[None]))[0]
                keys[arrived % QUEUE], owners[arrived % QUEUE] = key / key.norm(), row
                arrived += 1
            outputs.append(dino.head(dino.encoder(view.x)))
        dino.centre.mul_(0.9).add_(0.1 * torch.cat(outputs).mean(dim=0))
    rows = torch.tensor(owners)
    return {"queue": torch.stack(keys), "queue_rows": rows, "centre": dino.centre}


@pytest.mark.processes
def test_queue_and_centre_hold_what_all_processes_saw(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={PROCESSES}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*launcher, __file__, str(tmp_path)], env=environment, check=True, capture_output=True, timeout=120)
    with torch.no_grad():
        expected = by_hand()
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(PROCESSES)]
    for name, tensor in expected.items():
        torch.testing.assert_close(results[0][name], tensor, rtol=0, atol=1e-5)
        assert torch.equal(results[0][name], results[1][name]), name


def test_a_process_alone_gathers_its_own() -> None:
    x = torch.randn(3, 2)
    assert world_size() == 1
    assert gather(x) is x


def worker(folder: Path) -> None:
    """Take steps with this process's shares, and leave behind what it remembers; weights stay as they are."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    built = methods()
    for step in range(STEPS):
        for method in built.values():
            method(share(step, rank))
            method.after_step(step, STEPS)
    result: dict[str, object] = {"queue": built["moco"].queue, "queue_rows": built["moco"].queue_rows}
    result.update(centre=built["dino"].centre)
    torch.save(result, folder / f"{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    worker(Path(sys.argv[1]))
