from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinoise.choices import GENERATOR
from pinoise.errors import UserError
from pinoise.noise import PiNoise, make_generator
from pinoise.noise.generators import ConstantGenerator, GlobalGenerator, MLPGenerator, SharedGenerator
from pinoise.noise.image_generators import ResNet18Generator, UNetGenerator

SHAPES = [(5,), (2, 3), (2, 3, 2)]
IMAGE_GENERATORS = ("resnet18", "resnet50", "unet")
OPTIONS: dict[str, dict[str, int]] = {
    "mlp": {"hidden": 6},
    "resnet18": {"hidden": 6, "width": 4},
    "resnet50": {"hidden": 6, "width": 4},
    "unet": {"width": 4},
}


class Flat(nn.Linear):
    """An encoder of samples of any rank."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(1))


class Doubled(nn.Module):
    """A generator of a user's own, with an option."""

    def __init__(self, shape: tuple[int, ...], outputs: int, *, factor: float = 2.0) -> None:
        super().__init__()
        self.size = (outputs, *shape)
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x[:, None].expand(-1, *self.size)


def doubled(shape: tuple[int, ...], outputs: int, *, factor: float = 2.0) -> nn.Module:
    return Doubled(shape, outputs, factor=factor)


def reads_an_encoder(shape: tuple[int, ...], outputs: int, encoder: nn.Module) -> nn.Module:
    return SharedGenerator(shape, outputs, encoder, 4)


def makes_a_number(shape: tuple[int, ...], outputs: int) -> int:
    return outputs


def slow_layer(layer: nn.Module, x: np.ndarray) -> np.ndarray:
    """A fully connected layer, one sample and one unit at a time."""
    weight, bias = (parameter.detach().double().numpy() for parameter in layer.parameters())
    return np.array(
        [
            [sum(w * v for w, v in zip(row, sample, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
            for sample in x
        ]
    )


def slow_mlp_generator(generator: MLPGenerator, x: Tensor) -> np.ndarray:
    trunk = [layer for layer in generator.trunk if isinstance(layer, nn.Linear)]
    h = x.double().numpy().reshape(len(x), -1)
    for layer in trunk:
        h = np.maximum(slow_layer(layer, h), 0)
    outputs = []
    for head in generator.heads:
        first, second = (layer for layer in head.children() if isinstance(layer, nn.Linear))
        outputs.append(slow_layer(second, np.maximum(slow_layer(first, h), 0)))
    return np.stack(outputs, axis=1).reshape(len(x), -1, *x.shape[1:])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_mlp_agrees_with_one_unit_at_a_time(shape: tuple[int, ...], outputs: int) -> None:
    torch.manual_seed(0)
    generator = MLPGenerator(shape, outputs=outputs, hidden=7)
    x = torch.randn(3, *shape)
    raw = generator(x)
    assert raw.shape == (3, outputs, *shape)
    np.testing.assert_allclose(raw.detach().numpy(), slow_mlp_generator(generator, x), atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_shared_is_a_linear_map_of_the_encoders_features(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 4), nn.Tanh())
    generator = SharedGenerator(shape, outputs=2, encoder=encoder, features=4)
    x = torch.randn(3, *shape)
    expected = slow_layer(generator.head, encoder(x).detach().double().numpy()).reshape(3, 2, *shape)
    np.testing.assert_allclose(generator(x).detach().numpy(), expected, atol=1e-5)


def test_shared_sends_gradient_to_its_head_and_none_to_the_encoder() -> None:
    encoder = nn.Linear(5, 4)
    generator = SharedGenerator((5,), outputs=1, encoder=encoder, features=4)
    generator(torch.randn(3, 5)).square().sum().backward()
    assert generator.head.weight.grad is not None
    assert bool((generator.head.weight.grad != 0).any())
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_shared_neither_owns_nor_saves_the_encoder() -> None:
    generator = SharedGenerator((5,), outputs=1, encoder=nn.Linear(5, 4), features=4)
    assert set(generator.state_dict()) == {"head.weight", "head.bias"}
    assert {name for name, _ in generator.named_parameters()} == {"head.weight", "head.bias"}


def test_constant_has_no_parameters_and_returns_zeros() -> None:
    generator = ConstantGenerator((2, 4), outputs=2)
    raw = generator(torch.randn(3, 2, 4))
    assert list(generator.parameters()) == []
    assert raw.shape == (1, 2, 2, 4)  # one entry for all samples
    assert bool((raw == 0).all())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_global_is_one_number_per_feature_and_output_whatever_the_samples(shape: tuple[int, ...], outputs: int) -> None:
    generator = GlobalGenerator(shape, outputs=outputs)
    assert sum(parameter.numel() for parameter in generator.parameters()) == outputs * math.prod(shape)
    with torch.no_grad():
        generator.raw.normal_()
    first, second = generator(torch.randn(3, *shape)), generator(torch.randn(7, *shape))
    assert first.shape == (1, outputs, *shape)
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (name, shape)
        for name, path in GENERATOR.names.items()
        for shape in SHAPES
        if path and (name not in IMAGE_GENERATORS or len(shape) == 3)
    ],
)
def test_every_name_makes_a_generator_of_the_right_shape(name: str, shape: tuple[int, ...]) -> None:
    encoder = Flat(math.prod(shape), 4)
    generator = make_generator(name, shape, 2, encoder=encoder, options=OPTIONS.get(name))
    samples = 1 if name in ("global", "constant") else 3  # one entry for all samples, or one for each
    assert generator(torch.randn(3, *shape)).shape == (samples, 2, *shape)


@pytest.mark.parametrize(
    "part",
    [f"{__name__}:Doubled", f"{__name__}:doubled", Doubled, doubled],
    ids=["path of a class", "path of a function", "class", "function"],
)
def test_a_users_own_class_or_function_is_given_shape_outputs_and_its_options(part: object) -> None:
    x = torch.randn(3, 5)
    for options, factor in ((None, 2.0), ({"factor": 7.0}, 7.0)):
        generator = make_generator(part, (5,), 2, options=options)
        torch.testing.assert_close(generator(x), factor * torch.stack([x, x], dim=1))


def test_what_asks_for_an_encoder_is_given_it_and_nothing_else_is() -> None:
    encoder = Flat(5, 4)
    generator = make_generator(reads_an_encoder, (5,), 1, encoder=encoder)
    assert isinstance(generator, SharedGenerator)
    assert generator._encoder[0] is encoder
    assert isinstance(make_generator("mlp", (5,), 1, encoder=encoder, options={"hidden": 6}), MLPGenerator)


@pytest.mark.parametrize("name", ["global", "constant", "shared", "unet", Doubled])
def test_an_option_that_a_generator_does_not_have_is_an_error(name: object) -> None:
    with pytest.raises(UserError, match=r"cannot be called \(got an unexpected keyword argument 'hidden'\)"):
        make_generator(name, (1, 4, 4), 1, encoder=Flat(16, 4), options={"hidden": 6})


def test_what_makes_no_generator_is_refused() -> None:
    with pytest.raises(UserError, match=r"made int: it must make a torch module"):
        make_generator(makes_a_number, (5,), 1)
    with pytest.raises(UserError, match=r"generator 3 is of type int: give a torch module, or a class or function"):
        make_generator(3, (5,), 1)
    with pytest.raises(UserError, match=r"generator 'math:pi' is of type float: give a torch module"):
        make_generator("math:pi", (5,), 1)


def test_shared_with_an_encoder_of_unknown_size_names_it() -> None:
    with pytest.raises(UserError, match=r"given Sequential, whose out_features is None: pass encoder="):
        make_generator("shared", (5,), 1, encoder=nn.Sequential(nn.Linear(5, 4)))


@pytest.mark.parametrize("name", [name for name, path in GENERATOR.names.items() if path])
def test_noise_hands_hidden_and_width_to_the_generators_that_have_them(name: str) -> None:
    noise = PiNoise((1, 4, 4), generator=name, encoder=Flat(16, 4), hidden=6, width=4)
    generator = noise.generator
    if isinstance(generator, MLPGenerator):
        assert generator.trunk[1].out_features == 6
    elif isinstance(generator, ResNet18Generator):
        assert generator.trunk.width == 4
        assert generator.get_submodule("heads.0.0").out_features == 6
    elif isinstance(generator, UNetGenerator):
        assert generator.network.out.in_channels == 4
    assert noise(torch.randn(3, 1, 4, 4)).shape == (3, 1, 4, 4)
