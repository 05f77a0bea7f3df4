"""The configurations of the paper's scale are those of its tables, and their parts build."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinoise.experiments.plans import plan
from pinoise.paper.cost import cost_of, size_of_data
from pinoise.paper.reproduce.paper import find_item
from pinoise.training.config import Settings, complete, parse_settings, read_yaml

FOLDER = Path(__file__).parent.parent / "examples" / "paper"
ROWS = {
    "har": ("T2", "har", "PiNDA, μ learned"),
    "cifar10_resnet18": ("T3", "cifar10", "ResNet18, m = 256 (aug), N(0, Σ)"),
    "cifar10_resnet50": ("T3", "cifar10", "ResNet50, m = 256, N(0, Σ)"),
    "stl10_resnet18": ("T6", "stl10", "STL-10, ResNet18, generator ResNet18"),
    "stl10_resnet50": ("T6", "stl10", "STL-10, ResNet50, generator ResNet18"),
    "stl10_resnet50_twice": ("T6", "stl10", "STL-10, ResNet50, generator ResNet50"),
    "stl10_unet": ("T6", "stl10", "STL-10, ResNet18, generator U-Net"),
    "imagenet_resnet18": ("T6", "imagenet", "ImageNet, ResNet18, generator ResNet18"),
    "imagenet_dino": ("T5", "imagenet", "PiNDA + DINO"),
}


def configured(name: str) -> Settings:
    return complete(parse_settings(read_yaml(FOLDER / f"{name}.yaml")))


def test_every_configuration_is_one_of_a_table() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_configuration_has_the_settings_of_its_row(name: str) -> None:
    table, key, title = ROWS[name]
    item = find_item(table)
    ((group, row),) = [(group, row) for group, row in item.rows_on(key) if row.title == title]
    settings, usual = item.settings_of(group, row, "paper")
    (planned,) = plan(row.recipes, [0], settings=settings, usual=usual).values()
    ours = configured(name)
    assert ours.data.source == item.data[key].source
    assert ours.embedding == row.embedding
    same = ("encoder", "head", "method", "objective", "views", "noise")
    assert {part: getattr(ours, part) for part in same} == {part: getattr(planned, part) for part in same}
    assert ours.training.batch_size == planned.training.batch_size  # which devices share
    assert ours.training.epochs == planned.training.epochs
    assert ours.training.learning_rate == planned.training.learning_rate


@pytest.mark.parametrize("name", ["har", "cifar10_resnet18", "imagenet_dino"])  # the others are larger, not different
def test_a_configuration_builds_and_fits_on_the_gpu(name: str) -> None:
    settings = configured(name)
    found = cost_of(settings, *size_of_data(settings.data)[:2])
    assert 0 < found.base.step < found.whole.step
    assert found.whole.memory < 80e9
