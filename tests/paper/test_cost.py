from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from pinoise.errors import UserError
from pinoise.paper.cost import Cost, cost_of, without_noise
from pinoise.paper.rehearsal import Rehearsal, training_step
from pinoise.training.config import parse_settings
from pinoise.views import Batch, View

HAR = (561,)
SMALL_RESNET = {"name": "resnet18", "width": 4}
AUGMENTED = {"augmentations": ["simclr"]}


def cost(values: dict[str, Any], shape: tuple[int, ...] = HAR, rows: int = 1000, **options: Any) -> Cost:
    return cost_of(parse_settings(values), shape, rows, **options)


def mlp_products(*widths: int) -> int:
    return sum(a * b for a, b in pairwise(widths))


def test_the_papers_noise_on_vectors_costs_what_its_layers_multiply() -> None:
    found = cost({"objective": "paper", "noise": {"mean": "learned"}})
    encoder, head = mlp_products(561, 1024, 1024, 256), mlp_products(256, 256, 128)
    generator = 3 * 561 * 1024 + 3 * 1024**2  # as the paper's cost table implies
    assert found.base.sample.total == encoder + head
    assert found.added.sample.total == generator
    assert found.added.forward.total == 256 * generator
    similarities = 512 * 512 * 128
    assert found.base.forward.total == 512 * (encoder + head) + similarities
    first = 561 * 1024  # whose input needs no gradient
    assert found.base.step == 3 * found.base.forward.total - 512 * first


def test_the_memory_of_a_plain_step_is_that_of_its_layers() -> None:
    values = {"encoder": {"hidden": 32, "out_features": 16}, "head": {"hidden": 8, "out_features": 4}}
    found = cost({**values, "objective": "fixed", "training": {"batch_size": 100}}, (50,))
    weights = 51 * 32 + 33 * 32 + 33 * 16 + 17 * 8 + 9 * 4
    assert found.base.parameters == weights
    layers = 4 * 200 * (50 + 32 + 32 + 16 + 8 + 4)  # what each layer was given, and the projections
    similarities = 4 * 200 * 200
    extra = found.base.memory - 16 * weights - layers
    assert 0 < extra < 4 * similarities  # NT-Xent keeps a few matrices of similarities


def test_the_base_is_the_augmentations_alone_or_random_noise() -> None:
    images = without_noise(parse_settings({"encoder": SMALL_RESNET, "views": AUGMENTED}))
    assert images.views.noise.name == "none"
    assert images.views.augmentations[0].name == "simclr"
    vectors = without_noise(parse_settings({"objective": "paper", "noise": {"mean": "learned"}}))
    assert (vectors.objective.name, vectors.noise.mean) == ("fixed", "zero")
    clae = without_noise(parse_settings({"objective": "paper", "method": "clae"}))
    assert (clae.views.noise.name, clae.method.name) == ("none", "clae")


@pytest.mark.parametrize("values", [{"views": {"noise": "scarf"}}, {"objective": "fixed"}, {"method": "simcl"}])
def test_without_learned_noise_nothing_is_added(values: dict[str, Any]) -> None:
    views = {"noise": "none"} if values.get("method") == "simcl" else values.get("views", {})
    found = cost({**values, "views": views, "encoder": {"hidden": 32}}, (20,))
    assert found.added.step == found.added.memory == found.added.parameters == 0


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ({"objective": "paper", "noise": {"mean": "learned", "generator": {"hidden": 16}}}, (20,)),
        ({"objective": "supported"}, (20,)),
        ({"objective": "information", "noise": {"generator": {"hidden": 16}}}, (20,)),
        ({"objective": "paper", "method": "clae", "noise": {"generator": {"hidden": 16}}}, (20,)),
        ({"encoder": SMALL_RESNET, "views": {"augmentations": ["crop"]}}, (16, 16, 3)),
        ({"encoder": SMALL_RESNET, "method": "byol", "objective": "paper", "views": AUGMENTED}, (16, 16, 3)),
    ],
)
def test_counting_without_values_finds_what_a_real_step_does(values: dict[str, Any], shape: tuple[int, ...]) -> None:
    settings = parse_settings({"encoder": {"hidden": 32}, **values, "training": {"batch_size": 12}})
    _, products, _ = Rehearsal(settings, shape, 40).count_step()
    rehearsal = Rehearsal(settings, shape, 40)
    step = training_step(settings, rehearsal.model, rehearsal.rows, batch_size=12)
    step()  # the first one finds neighbours, which is no part of a usual step
    with FlopCounterMode(display=False) as counter:
        step()
    assert products == counter.get_total_flops() // 2


@pytest.mark.slow
def test_half_precision_keeps_less_memory() -> None:
    values = {"encoder": SMALL_RESNET, "views": AUGMENTED, "objective": "paper", "noise": {"generator": SMALL_RESNET}}
    usual, half = (
        cost({**values, "training": {"batch_size": 64, "precision": precision}}, (32, 32, 3))
        for precision in ("32-true", "bf16-mixed")
    )
    assert half.base.step == usual.base.step
    assert 0.4 < half.base.memory / usual.base.memory < 0.8


@pytest.mark.slow
def test_a_batch_of_any_size_is_counted_without_taking_its_memory() -> None:
    found = cost(
        {"encoder": {"name": "resnet50", "stem": "cifar"}, "views": AUGMENTED, "objective": "paper"}, (96, 96, 3)
    )
    assert found.base.forward.total == pytest.approx(6.05e12, rel=0.01)  # the paper's figure
    assert found.base.memory > 100e9
    assert found.base.seconds is None


def test_an_epoch_has_the_steps_of_training_and_times_are_in_proportion() -> None:
    found = cost({"encoder": {"hidden": 32}}, (20,), rows=1000, timed_steps=2)
    assert (found.steps, found.batch_size) == (3, 256)
    assert found.base.seconds is not None
    assert found.seconds_per_epoch(found.base) == 3 * found.base.seconds
    assert found.on_machine(1e9).whole.seconds == pytest.approx(2 * found.whole.step / 1e9)


def test_noise_on_the_background_needs_no_masks() -> None:
    for views in ({**AUGMENTED, "noise": "background"}, {"noise": "none", "augmentations": ["crop", "background"]}):
        assert cost({"encoder": SMALL_RESNET, "views": views}, (16, 16, 3)).base.step > 0


def test_objects_of_a_user_are_counted() -> None:
    encoder = nn.Linear(20, 7)
    found = cost({"encoder": encoder, "objective": "paper", "noise": {"generator": {"hidden": 16}}}, (20,))
    assert found.base.sample.total == mlp_products(20, 7) + mlp_products(7, 256, 128)
    assert found.added.sample.total == mlp_products(20, 16, 16, 16, 20)


class Peeking(View):
    """Keeps the samples above a threshold, so that its cost depends on values."""

    def forward(self, batch: Batch) -> Batch:
        count = int((batch.x > 0).nonzero().sum())
        return batch.moved(batch.x + count)


def test_a_part_whose_cost_depends_on_values_is_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match="a part looks at the values of a batch"):
        cost({"views": {"noise": "none", "augmentations": [Peeking()]}}, (20,))


def test_counting_leaves_the_weights_alone() -> None:
    rehearsal = Rehearsal(parse_settings({"encoder": SMALL_RESNET, "views": AUGMENTED}), (16, 16, 3), 40)
    before = {name: value.clone() for name, value in rehearsal.model.named_parameters()}
    rehearsal.count_sample()
    rehearsal.count_step()
    for name, value in rehearsal.model.named_parameters():
        assert torch.equal(value, before[name]), name
    assert not nn.modules.module._global_forward_hooks
