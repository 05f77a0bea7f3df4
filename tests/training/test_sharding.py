"""Two processes that divide the weights learn what two learn that both have them all, and save whole checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.datasets import load_digits
from tests.training.pool import PROCESSES, Everywhere, pool_of_two
from torch import Tensor, distributed, nn

from pinoise.choices import StrategyName
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.training.build import seeded_model
from pinoise.training.callbacks import Interrupted, Quiet
from pinoise.training.checkpoint import LAST, read_checkpoint
from pinoise.training.config import Settings, merge, parse_settings
from pinoise.training.device import fabric_of, make_fabric
from pinoise.training.loop import train
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.processes import Group

pytestmark = pytest.mark.processes

METHODS: dict[str, Any] = {
    "simclr": {"method": "simclr"},
    "moco": {"method": {"name": "moco", "queue": 64}},
    "byol": {"method": "byol"},
    "simsiam": {"method": "simsiam"},
    "dino": {"method": {"name": "dino", "prototypes": 8}},
    "clae": {"method": "clae"},
    "shared": {"noise": {"generator": {"name": "shared"}}},
    "patience": {"training": {"patience": 5}},
}
SMALL: dict[str, Any] = {
    "encoder": {"hidden": 16, "out_features": 8},
    "head": {"hidden": 8, "out_features": 6},
    "noise": {"generator": {"hidden": 8}},
    "training": {"epochs": 4, "batch_size": 32, "device": "cpu", "information_draws": 0},
}
STOPPED = 5  # the step at which a stop is asked for; processes agree on it every ten


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Everywhere]:
    with pool_of_two() as call:
        yield call


def problem(name: str) -> tuple[Settings, ContrastiveModel, Rows]:
    x = load_digits().data[:130]
    standardizer = Standardizer.fit(x)
    rows = make_rows(x, standardizer)
    settings = parse_settings(merge(SMALL, METHODS[name]))
    return settings, seeded_model(settings, standardizer, rows), rows


def trained(name: str, strategy: StrategyName, folder: Path, stops: bool, resumes: bool) -> dict[str, Tensor]:
    """Train in one of the two processes, and return the weights, or stop in the middle with all saved."""
    settings, model, rows = problem(name)
    group = Group(distributed.get_rank(), PROCESSES, 1)
    fabric = fabric_of(group, accelerator="cpu", devices=2, precision="32-true", strategy=strategy, wait=10)
    fabric.launch()
    steps, kept = iter(range(100)), list[int]()

    def should_stop() -> bool:
        kept.append(sum(weight.numel() for weight in model.parameters()))
        return stops and next(steps) + 1 >= STOPPED

    folder.mkdir(exist_ok=True)
    try:
        train(
            model,
            rows,
            settings.training.model_copy(update={"checkpoint_every": 3}),
            fabric=fabric,
            reporter=Quiet(),
            checkpoints=folder,
            resume_from=folder / LAST if resumes else None,
            should_stop=should_stop,
        )
    except Interrupted:
        return {}
    total = sum(weight.numel() for weight in model.parameters())
    assert max(kept) == total if strategy == "ddp" else max(kept) < 0.6 * total
    return model.state_dict()


@pytest.mark.parametrize("name", METHODS)
def test_divided_weights_learn_the_same(everywhere: Everywhere, tmp_path: Path, name: str) -> None:
    whole, _ = everywhere(trained, name, "ddp", tmp_path / "ddp", False, False)
    divided, other = everywhere(trained, name, "fsdp", tmp_path / "fsdp", False, False)
    for key, tensor in whole.items():
        torch.testing.assert_close(divided[key], tensor, rtol=1e-4, atol=1e-5, msg=key)
        torch.testing.assert_close(other[key], divided[key], rtol=1e-6, atol=1e-6, equal_nan=True, msg=key)
    one, two = (read_checkpoint(tmp_path / strategy / LAST) for strategy in ("ddp", "fsdp"))
    assert two.model.keys() == one.model.keys()
    assert two.optimizer.state.keys() == one.optimizer.state.keys()
    for number, moments in one.optimizer.state.items():
        torch.testing.assert_close(two.optimizer.state[number].exp_avg, moments.exp_avg, rtol=1e-2, atol=1e-6)
        assert two.optimizer.state[number].step == moments.step


@pytest.mark.parametrize("name", ["simclr", "byol"])
def test_a_divided_training_resumes_exactly_and_one_process_goes_on_with_it(
    everywhere: Everywhere, tmp_path: Path, name: str
) -> None:
    straight, _ = everywhere(trained, name, "fsdp", tmp_path / "straight", False, False)
    everywhere(trained, name, "fsdp", tmp_path / "stopped", True, False)
    at = read_checkpoint(tmp_path / "stopped" / LAST).step
    assert 0 < at < 16
    settings, model, rows = problem(name)
    alone, last = make_fabric(settings.training), tmp_path / "stopped" / LAST
    train(model, rows, settings.training, fabric=alone, reporter=Quiet(), resume_from=last)
    assert all(isinstance(weight, nn.Parameter) and bool(weight.isfinite().all()) for weight in model.parameters())
    resumed, _ = everywhere(trained, name, "fsdp", tmp_path / "stopped", False, True)
    assert all(tensor.equal(straight[key]) for key, tensor in resumed.items())
