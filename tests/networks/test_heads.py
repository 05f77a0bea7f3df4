from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.networks.mlp import BatchNormHead, PredictionHead, ProjectionHead, PrototypeHead, SimSiamHead

Rows = list[list[float]]


def linear(x: Rows, layer: nn.Linear) -> Rows:
    weight = layer.weight.tolist()
    bias = [0.0] * len(weight) if layer.bias is None else layer.bias.tolist()
    return [
        [sum(w * v for w, v in zip(row, sample, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
        for sample in x
    ]


def batch_norm(x: Rows, layer: nn.BatchNorm1d) -> Rows:
    result = [list(sample) for sample in x]
    for k in range(len(x[0])):
        column = [sample[k] for sample in x]
        mean = sum(column) / len(column)
        variance = sum((value - mean) ** 2 for value in column) / len(column)
        scale, shift = (layer.weight.tolist()[k], layer.bias.tolist()[k]) if layer.affine else (1.0, 0.0)
        for i, value in enumerate(column):
            result[i][k] = scale * (value - mean) / math.sqrt(variance + layer.eps) + shift
    return result


def unit(x: Rows) -> Rows:
    return [[value / math.sqrt(sum(v * v for v in sample)) for value in sample] for sample in x]


def slow(layers: nn.Sequential, x: Tensor) -> Rows:
    rows: Rows = x.tolist()
    for layer in layers:
        if isinstance(layer, nn.Linear):
            rows = linear(rows, layer)
        elif isinstance(layer, nn.BatchNorm1d):
            rows = batch_norm(rows, layer)
        elif isinstance(layer, nn.ReLU):
            rows = [[max(value, 0.0) for value in sample] for sample in rows]
        elif isinstance(layer, nn.GELU):
            rows = [[value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in sample] for sample in rows]
        else:
            pytest.fail(f"the head has a layer {layer}")
    return rows


@pytest.mark.parametrize(
    "head",
    [
        ProjectionHead(6, hidden=5, out_features=3),
        BatchNormHead(6, hidden=5, out_features=3),
        PredictionHead(6, hidden=2),
        PredictionHead(6),
        SimSiamHead(6, hidden=5, out_features=3),
    ],
)
def test_agrees_with_one_unit_at_a_time(head: nn.Sequential) -> None:
    for parameter in head.parameters():
        parameter.data.normal_()
    x = torch.randn(7, 6)
    np.testing.assert_allclose(head(x).detach().numpy(), slow(head, x), rtol=1e-4, atol=1e-5)
    assert head.out_features == head(x).shape[1]


def test_layers_are_those_of_the_papers() -> None:
    def kinds(head: nn.Sequential) -> list[str]:
        return [type(layer).__name__ for layer in head]

    hidden = ["Linear", "BatchNorm1d", "ReLU"]
    assert kinds(ProjectionHead(6)) == ["Linear", "ReLU", "Linear"]
    assert kinds(BatchNormHead(6)) == [*hidden, "Linear"]
    assert kinds(PredictionHead(8)) == [*hidden, "Linear"]
    assert kinds(SimSiamHead(6)) == [*hidden, *hidden, "Linear", "BatchNorm1d"]
    for head in (ProjectionHead(256), BatchNormHead(256), SimSiamHead(256)):
        widths = [(layer.in_features, layer.out_features) for layer in head if isinstance(layer, nn.Linear)]
        assert (widths[0], widths[-1]) == ((256, 256), (256, 128))
        assert head.out_features == 128
    assert PredictionHead(8)[0].out_features == 2
    assert not SimSiamHead(6)[-1].affine


def test_prototype_scores_are_cosines_with_the_prototypes() -> None:
    head = PrototypeHead(6, hidden=5, bottleneck=4, prototypes=9)
    x = torch.randn(3, 6)
    features, directions = unit(slow(head.layers, x)), unit(head.prototypes.weight.tolist())
    expected = [[sum(a * b for a, b in zip(z, w, strict=True)) for w in directions] for z in features]
    np.testing.assert_allclose(head(x).detach().numpy(), expected, atol=1e-5)
    assert head.out_features == 9


def test_the_length_of_a_prototype_has_no_effect_and_gets_no_gradient() -> None:
    head = PrototypeHead(6, hidden=5, bottleneck=4, prototypes=9)
    x = torch.randn(3, 6)
    head(x).square().sum().backward()
    weight, gradient = head.prototypes.weight, head.prototypes.weight.grad
    assert gradient is not None
    assert float(gradient.norm()) > 0
    np.testing.assert_allclose((weight * gradient).sum(dim=1).detach().numpy(), 0, atol=1e-5)
    longer = copy.deepcopy(head)
    longer.prototypes.weight.data.mul_(torch.linspace(0.1, 10, 9)[:, None])
    torch.testing.assert_close(longer(x), head(x))


@pytest.mark.parametrize("wrong", ["hidden", "bottleneck", "prototypes"])
def test_a_width_below_one_is_refused(wrong: str) -> None:
    with pytest.raises(UserError, match=rf"^{wrong} of the head is 0: it must be from 1 to 65536"):
        PrototypeHead(5, **{wrong: 0})
    if wrong == "hidden":
        for kind in (BatchNormHead, SimSiamHead):
            with pytest.raises(UserError, match=r"^hidden of the head is -1: it must be from 1 to 65536"):
                kind(5, hidden=-1)
        with pytest.raises(UserError, match=r"^hidden of the head is 0: it must be from 1 to 65536"):
            PredictionHead(5, hidden=0)
