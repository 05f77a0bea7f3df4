from __future__ import annotations

import pytest
import torch
from torch import nn

from pinoise.networks import MLPEncoder, ResNet18
from pinoise.noise import make_generator
from pinoise.paper.counting import count_operations, counting_saved

CIFAR = (3, 32, 32)


def slow_resnet18_operations(side: int) -> tuple[int, int]:
    """Products and normalised elements of the convolutions of a ResNet18 with the CIFAR stem, layer by layer."""
    products, elements = 9 * 3 * 64 * side**2, 64 * side**2
    entering = 64
    for stage, channels in enumerate([64, 128, 256, 512]):
        pixels = (side // 2**stage) ** 2
        products += 9 * (entering + 3 * channels) * channels * pixels
        elements += 4 * channels * pixels
        if entering != channels:
            products += entering * channels * pixels
            elements += channels * pixels
        entering = channels
    return products, elements


@pytest.mark.parametrize(
    ("name", "expected"), [("mlp", "1.26e+07"), ("resnet18", "5.65e+08"), ("resnet50", "1.32e+09")]
)
def test_a_generator_with_a_learned_mean_costs_what_the_paper_reports_for_cifar(name: str, expected: str) -> None:
    with torch.device("meta"):
        generator, x = make_generator(name, CIFAR, 2), torch.empty(1, *CIFAR)
    assert f"{count_operations(generator, x).total:.2e}" == expected


def test_products_and_normalised_elements_are_those_counted_layer_by_layer() -> None:
    with torch.device("meta"):
        network, x = ResNet18(CIFAR), torch.empty(2, *CIFAR)
    products, elements = slow_resnet18_operations(32)
    found = count_operations(network, x)
    assert found.multiply_accumulates == 2 * products
    assert found.normalisation == 4 * 2 * elements
    assert found.total == 2 * products + 8 * elements


@pytest.mark.parametrize(
    ("layer", "operations"),
    [
        (nn.BatchNorm2d(4), 4),
        (nn.BatchNorm2d(4, affine=False), 2),
        (nn.GroupNorm(2, 4), 4),
        (nn.LayerNorm(6), 4),
        (nn.LayerNorm(6, elementwise_affine=False), 2),
        (nn.InstanceNorm2d(4), 2),
        (nn.ReLU(), 0),
    ],
)
def test_every_kind_of_normalisation_counts_by_element(layer: nn.Module, operations: int) -> None:
    assert count_operations(layer, torch.randn(3, 4, 5, 6)) == (0, operations * 3 * 4 * 5 * 6)


def test_a_network_without_normalisation_costs_its_products() -> None:
    found = count_operations(MLPEncoder((7,), hidden=5, out_features=2), torch.randn(3, 7))
    assert found == (3 * (7 * 5 + 5 * 5 + 5 * 2), 0)


def test_an_encoder_that_is_referred_to_is_counted() -> None:
    with torch.device("meta"):
        encoder, x = ResNet18((3, 8, 8), width=4), torch.empty(1, 3, 8, 8)
        generator = make_generator("shared", (3, 8, 8), 1, encoder=encoder)
        last = count_operations(encoder.layer4, torch.empty(1, encoder.map_channels, 2, 2))
    found, whole = count_operations(generator, x), count_operations(encoder, x)
    assert found.normalisation == whole.normalisation - last.normalisation > 0
    assert found.multiply_accumulates > whole.multiply_accumulates - last.multiply_accumulates


def test_counting_leaves_modes_statistics_and_hooks_as_they_were() -> None:
    network = ResNet18((3, 8, 8), width=4)
    network.bn1.eval()
    count_operations(network, torch.randn(1, 3, 8, 8))
    assert network.training
    assert network.get_submodule("layer1.0.bn1").training
    assert not network.bn1.training
    assert int(network.get_buffer("layer1.0.bn1.num_batches_tracked")) == 0
    assert not torch.nn.modules.module._global_forward_hooks


def test_every_piece_of_memory_counts_once_and_weights_do_not() -> None:
    layer, x = nn.Linear(30, 20), torch.randn(50, 30)
    with counting_saved(layer.parameters()) as saved:
        h = layer(x)
        (h.exp() + h[:25].sum()).sum()
    assert saved.peak == 4 * (50 * 30 + 50 * 20)  # x and exp(h), which its own derivative needs
    with counting_saved() as with_weights:
        layer(x).exp().sum()
    assert with_weights.peak == saved.peak  # the first layer's weight is needed only for the gradient of x


def test_memory_is_given_back_with_the_graph() -> None:
    x = torch.randn(50, 30, requires_grad=True)
    with counting_saved() as saved:
        torch.autograd.grad(x.exp().sum(), x)
        first = saved.now
        torch.autograd.grad(x.exp().sin().exp().sum(), x)
    assert first == saved.now == 0
    assert saved.peak == 2 * 4 * 50 * 30  # of the larger graph, not of both


def test_gradients_stay_the_same() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(5, 3)
    (expected,) = torch.autograd.grad(layer(x).tanh().sum(), layer.weight)
    with counting_saved(layer.parameters()):
        (found,) = torch.autograd.grad(layer(x).tanh().sum(), layer.weight)
    assert torch.equal(found, expected)
