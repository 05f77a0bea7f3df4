from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.errors import UserError
from pinoise.networks import ResNet18
from pinoise.noise import make_generator
from pinoise.noise.image_generators import ResNet18Generator, SharedMapGenerator, UNetGenerator

OPTIONS: dict[str, dict[str, int]] = {
    "resnet18": {"hidden": 6, "width": 4},
    "resnet50": {"hidden": 6, "width": 4},
    "unet": {"width": 4},
    "shared": {},
}
NAMES = list(OPTIONS)
SHAPES = [(3, 16, 16), (1, 9, 14)]


def build(name: str, shape: tuple[int, ...] = (3, 16, 16), *, outputs: int = 2) -> nn.Module:
    encoder = ResNet18(shape, width=8)
    return make_generator(name, shape, outputs, encoder=encoder, options=OPTIONS[name])


def images(m: int, shape: tuple[int, ...] = (3, 16, 16)) -> Tensor:
    """Standardised images with some structure."""
    x = F.interpolate(torch.randn(m, shape[0], 4, 4), size=shape[1:], mode="bilinear")
    return (x - x.mean()) / x.std()


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_raw_parameters_have_the_shape_of_the_image_once_per_output(
    name: str, shape: tuple[int, ...], outputs: int
) -> None:
    assert build(name, shape, outputs=outputs)(images(3, shape)).shape == (3, outputs, *shape)


@pytest.mark.parametrize("name", NAMES)
def test_raw_parameters_start_near_zero_and_differ_between_samples(name: str) -> None:
    generator = build(name)
    if isinstance(generator, SharedMapGenerator):
        generator._encoder[0](images(8))  # gives its batch normalisation statistics of images
    raw = generator(images(8))
    assert 0 < raw.square().mean().sqrt().item() < 0.15
    assert not torch.allclose(raw[0], raw[1])


@pytest.mark.parametrize("name", NAMES)
def test_gradient_reaches_every_parameter_of_the_generator(name: str) -> None:
    generator = build(name)
    generator(images(4)).square().sum().backward()
    for parameter_name, parameter in generator.named_parameters():
        assert parameter.grad is not None
        assert float(parameter.grad.norm()) > 0, parameter_name


@pytest.mark.parametrize("name", ["unet", "shared"])
def test_noise_of_a_sample_does_not_depend_on_its_batch_mates(name: str) -> None:
    generator = build(name).double()
    if isinstance(generator, SharedMapGenerator):
        generator._encoder[0].double()
    x = images(4).double()
    torch.testing.assert_close(generator(x)[2:3], generator(x[2:3]))


def test_resnet_gives_pooled_features_to_one_head_of_two_layers_per_output() -> None:
    generator = ResNet18Generator((3, 16, 16), outputs=2, width=4, hidden=6).eval()
    assert generator.trunk.depth == 18
    x = images(3)
    features = generator.trunk(x)  # (3, 32)
    state = generator.state_dict()
    for output in range(2):
        first, second = (
            (state[f"heads.{output}.{layer}.weight"], state[f"heads.{output}.{layer}.bias"]) for layer in (0, 2)
        )
        assert (first[0].shape, second[0].shape) == ((6, 32), (3 * 16 * 16, 6))
        expected = (features @ first[0].T + first[1]).clamp_min(0) @ second[0].T + second[1]
        torch.testing.assert_close(generator(x)[:, output].flatten(1), expected)


def test_unet_puts_its_maps_in_order_of_output_then_channel() -> None:
    generator = UNetGenerator((3, 9, 7), outputs=2, width=4)
    x = images(2, (3, 9, 7))
    maps, raw = generator.network(x), generator(x)
    for output in range(2):
        for channel in range(3):
            assert torch.equal(raw[:, output, channel], maps[:, 3 * output + channel])


def slow_decoder(state: dict[str, Tensor], maps: Tensor, size: tuple[int, int]) -> Tensor:
    """1×1 convolution, two times twice the size and a 3×3 convolution, the image's size, a 3×3 convolution."""
    h = torch.einsum("oi,mihw->mohw", state["reduce.weight"][:, :, 0, 0], maps)
    h = (h + state["reduce.bias"][:, None, None]).clamp_min(0)
    for step in range(2):
        h = h.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
        h = F.conv2d(h, state[f"refine.{step}.weight"], state[f"refine.{step}.bias"], padding=1).clamp_min(0)
    if h.shape[2:] != size:
        h = nn.Upsample(size=size, mode="bilinear")(h)
    return F.conv2d(h, state["out.weight"], state["out.bias"], padding=1)


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 9, 14)])
def test_shared_decodes_the_maps_of_the_encoder_in_evaluation_mode(shape: tuple[int, int, int]) -> None:
    encoder = ResNet18(shape, width=8)
    encoder(images(8, shape))
    generator = SharedMapGenerator(shape, outputs=2, encoder=encoder)
    x = images(3, shape)
    raw = generator(x)
    maps = encoder.eval().maps(x)
    expected = slow_decoder(generator.state_dict(), maps, shape[1:]).reshape(3, 2, *shape)
    torch.testing.assert_close(raw, expected)


def test_shared_leaves_modes_statistics_and_gradients_of_the_encoder_alone() -> None:
    encoder = ResNet18((3, 16, 16), width=4)
    encoder.layer2.eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    generator = SharedMapGenerator((3, 16, 16), outputs=1, encoder=encoder)
    generator(images(4)).sum().backward()
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert encoder.training
    assert encoder.get_submodule("layer1.0.bn1").training
    assert not encoder.get_submodule("layer2.0.bn1").training
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_shared_follows_the_encoder_as_it_learns_and_does_not_own_it() -> None:
    encoder = ResNet18((3, 16, 16), width=4)
    generator = SharedMapGenerator((3, 16, 16), outputs=1, encoder=encoder)
    x = images(2)
    before = generator(x)
    with torch.no_grad():
        encoder.conv1.weight.add_(1.0)
    assert not torch.allclose(generator(x), before)
    assert {name.split(".")[0] for name in generator.state_dict()} == {"reduce", "refine", "out"}


def test_maps_of_unknown_size_are_refused() -> None:
    class Maps(nn.Module):
        def maps(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(UserError, match=r"Maps has map_channels None: give it a method maps\(x\) and the integer"):
        make_generator("shared", (3, 4, 4), 1, encoder=Maps())


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "unet"])
@pytest.mark.parametrize("shape", [(784,), (28, 28)])
def test_samples_that_are_no_images_are_refused_in_a_sentence(name: str, shape: tuple[int, ...]) -> None:
    message = (
        rf"^generator '{name}' takes images, \(channels, height, width\): one sample has shape \({shape[0]},.*\)\.$"
    )
    with pytest.raises(UserError, match=message):
        make_generator(name, shape, 1)
