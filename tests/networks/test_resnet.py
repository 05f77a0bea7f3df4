from __future__ import annotations

import copy
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinoise.errors import UserError
from pinoise.networks import ResNet18, ResNet50
from pinoise.networks.resnet import Depth, Stem

NETWORKS: dict[Depth, type[ResNet18 | ResNet50]] = {18: ResNet18, 50: ResNet50}


def published_norm(name: str, channels: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (channels,)
    yield f"{name}.num_batches_tracked", ()


def published(depth: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of torchvision's weights, from the tables of the ResNet paper."""
    yield "conv1.weight", (64, 3, 7, 7)
    yield from published_norm("bn1", 64)
    repeats = {18: [2, 2, 2, 2], 50: [3, 4, 6, 3]}[depth]
    entering = 64
    for stage, (channels, repeat) in enumerate(zip([64, 128, 256, 512], repeats, strict=True), start=1):
        leaving = channels if depth == 18 else 4 * channels
        for block in range(repeat):
            name = f"layer{stage}.{block}"
            if depth == 18:
                kernels = [(channels, entering, 3), (channels, channels, 3)]
            else:
                kernels = [(channels, entering, 1), (channels, channels, 3), (leaving, channels, 1)]
            for number, (out, into, side) in enumerate(kernels, start=1):
                yield f"{name}.conv{number}.weight", (out, into, side, side)
                yield from published_norm(f"{name}.bn{number}", out)
            if block == 0 and (stage > 1 or depth == 50):
                yield f"{name}.downsample.0.weight", (leaving, entering, 1, 1)
                yield from published_norm(f"{name}.downsample.1", leaving)
            entering = leaving
    yield "fc.weight", (1000, entering)
    yield "fc.bias", (1000,)


def slow_resnet(state: Mapping[str, Tensor], x: Tensor, *, training: bool) -> Tensor:
    """The published network, read from the names of its weights alone."""

    def norm(name: str, h: Tensor) -> Tensor:
        mean, var = state[f"{name}.running_mean"].clone(), state[f"{name}.running_var"].clone()
        return F.batch_norm(h, mean, var, state[f"{name}.weight"], state[f"{name}.bias"], training=training)

    large = state["conv1.weight"].shape[-1] == 7
    h = F.conv2d(x, state["conv1.weight"], stride=2 if large else 1, padding=3 if large else 1)
    h = norm("bn1", h).clamp_min(0)
    if large:
        h = F.max_pool2d(h, 3, stride=2, padding=1)
    for stage in range(1, 5):
        block = 0
        while f"layer{stage}.{block}.conv1.weight" in state:
            name = f"layer{stage}.{block}"
            last = 3 if f"{name}.conv3.weight" in state else 2
            stride = 2 if stage > 1 and block == 0 else 1
            shortcut = h
            if f"{name}.downsample.0.weight" in state:
                shortcut = norm(
                    f"{name}.downsample.1", F.conv2d(h, state[f"{name}.downsample.0.weight"], stride=stride)
                )
            for number in range(1, last + 1):
                weight = state[f"{name}.conv{number}.weight"]
                strided = stride if number == last - 1 else 1  # the 3×3 of a bottleneck, the first of a basic block
                h = norm(f"{name}.bn{number}", F.conv2d(h, weight, stride=strided, padding=weight.shape[-1] // 2))
                h = h.clamp_min(0) if number < last else h
            h = (h + shortcut).clamp_min(0)
            block += 1
    return h.flatten(2).sum(dim=2) / (h.shape[2] * h.shape[3])


def randomise_norms(network: nn.Module) -> None:
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias)
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)


@pytest.mark.parametrize("depth", NETWORKS)
def test_names_and_shapes_are_torchvisions_without_its_classifier(depth: Depth) -> None:
    with torch.device("meta"):
        network = NETWORKS[depth]((3, 224, 224))
    ours = [(name, tuple(value.shape)) for name, value in network.state_dict().items()]
    theirs = list(published(depth))
    assert theirs[-2:] == [("fc.weight", (1000, network.out_features)), ("fc.bias", (1000,))]
    assert sorted(ours) == sorted(theirs[:-2])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
@pytest.mark.parametrize("depth", NETWORKS)
def test_a_forward_pass_agrees_with_the_architecture_read_from_the_state_dict(
    depth: Depth, stem: Stem, training: bool
) -> None:
    network = NETWORKS[depth]((3, 33, 21), width=4, stem=stem).double()
    randomise_norms(network)
    state = copy.deepcopy(network.state_dict())
    x = torch.randn(2, 3, 33, 21, dtype=torch.float64)
    network.train(training)
    expected = slow_resnet(state, x, training=training)
    assert expected.shape == (2, network.out_features)
    torch.testing.assert_close(network(x), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("side", "stem"), [(32, "cifar"), (64, "cifar"), (65, "imagenet"), (224, "imagenet")])
def test_the_longer_side_chooses_the_stem(side: int, stem: Stem) -> None:
    with torch.device("meta"):
        network = ResNet18((3, 16, side), width=4)
        chosen = ResNet18((3, 16, side), width=4, stem="cifar")
    assert network.stem == stem
    assert network.conv1.kernel_size == ((3, 3) if stem == "cifar" else (7, 7))
    assert chosen.stem == "cifar"


def test_convolutions_start_as_kaiming_has_them_for_the_way_back() -> None:
    network = ResNet18((3, 8, 8), width=32)
    for name, part in network.named_modules():
        if isinstance(part, nn.Conv2d) and part.weight.numel() > 4000:
            fan_out = part.weight.shape[0] * math.prod(part.kernel_size)
            assert part.weight.std().item() == pytest.approx(math.sqrt(2 / fan_out), rel=0.06), name
        if isinstance(part, nn.BatchNorm2d):
            assert bool((part.weight == 1).all())
            assert bool((part.bias == 0).all())


@pytest.mark.parametrize("counts_batches", [True, False])
def test_published_weights_load_to_the_last_number(counts_batches: bool) -> None:
    state = {name: torch.randn(shape) for name, shape in published(18) if "batches" not in name}
    for name in state:
        if name.endswith("running_var"):
            state[name] = state[name].exp()
    if counts_batches:
        state |= {name: torch.tensor(7) for name, _ in published(18) if "batches" in name}
    network = ResNet18((3, 224, 224))
    network.load_torchvision(state)
    loaded = network.state_dict()
    for name, value in state.items():
        assert name.startswith("fc.") or torch.equal(loaded[name], value)
    assert int(network.bn1.num_batches_tracked or 0) == (7 if counts_batches else 0)


@pytest.mark.parametrize("kind", [ResNet18, ResNet50])
def test_published_weights_are_loaded_from_their_file_when_asked_for(
    kind: type[ResNet18 | ResNet50], tmp_path: Path
) -> None:
    source = kind((3, 16, 16), width=4)
    state = {**source.state_dict(), "fc.weight": torch.zeros(10, source.out_features), "fc.bias": torch.zeros(10)}
    torch.save(state, tmp_path / "published.pth")
    network = kind((3, 16, 16), width=4, weights=tmp_path / "published.pth")
    assert not torch.equal(network.conv1.weight, source.conv1.weight)
    network.load_published()
    for name, value in source.state_dict().items():
        assert torch.equal(network.state_dict()[name], value), name


def test_a_file_of_weights_that_is_gone_is_missed_only_when_it_is_read(tmp_path: Path) -> None:
    network = ResNet18((3, 16, 16), width=4, weights=tmp_path / "gone.pth")
    with pytest.raises(UserError, match=r"gone\.pth does not exist"):
        network.load_published()


def small_state(*, depth: Depth = 18, stem: Stem = "imagenet", width: int = 4, channels: int = 3) -> dict[str, Tensor]:
    network = NETWORKS[depth]((channels, 32, 32), width=width, stem=stem)
    return {**network.state_dict(), "fc.weight": torch.zeros(10, network.out_features), "fc.bias": torch.zeros(10)}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (small_state(), r"stem 'cifar' for images of 3 channels \(conv1.weight has shape \(4, 3, 7, 7\) instead of"),
        (small_state(stem="cifar", channels=1), r"conv1.weight has shape \(4, 1, 3, 3\) instead of \(4, 3, 3, 3\)\)"),
        (small_state(stem="cifar", width=8), r"a ResNet18 of width 4 .*conv1.weight has shape \(8, 3, 3, 3\)"),
        (small_state(stem="cifar", depth=50), r"layer1.0.conv1.weight has shape \(4, 4, 1, 1\) instead of"),
        ({"state_dict": small_state()}, r"conv1.weight is missing\): choose what they were made with"),
        ({**small_state(stem="cifar"), "bn1.bias": 3}, r"bn1.bias has shape \(\) instead of \(4,\)"),
    ],
    ids=["stem", "channels", "width", "depth", "wrapped", "not tensors"],
)
def test_weights_that_do_not_fit_are_refused_in_a_sentence_and_nothing_is_loaded(
    state: dict[str, Tensor], message: str
) -> None:
    network = ResNet18((3, 32, 32), width=4)
    before = copy.deepcopy(network.state_dict())
    with pytest.raises(UserError, match=message) as caught:
        network.load_torchvision(state)
    assert len(re.findall(r"\.(?: |$)", str(caught.value))) == 1
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_channels_last_changes_the_memory_and_not_the_result() -> None:
    network = ResNet18((3, 16, 16), width=8).double().eval()
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    expected = network(x)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = x.to(memory_format=torch.channels_last)
    torch.testing.assert_close(network(x), expected)
    assert network.maps(x).is_contiguous(memory_format=torch.channels_last)


def test_what_is_no_image_or_of_other_channels_is_refused() -> None:
    with pytest.raises(UserError, match=r"a ResNet18 takes images, \(channels, height, width\).*shape \(784,\)\.$"):
        ResNet18((784,))
    network = ResNet18((3, 8, 8), width=4)
    with pytest.raises(UserError, match=r"images of 3 channels, \(m, 3, height, width\).*shape \(2, 1, 8, 8\)\.$"):
        network(torch.zeros(2, 1, 8, 8))
    with pytest.raises(UserError, match=r"was given a tensor of shape \(3, 8, 8\)"):
        network.maps(torch.zeros(3, 8, 8))


def test_choices_that_do_not_exist_are_named_with_those_that_do() -> None:
    with pytest.raises(UserError, match=r"unknown stem 'imagnet': did you mean 'imagenet'"):
        ResNet18((3, 8, 8), stem="imagnet")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"width of a ResNet18 is 0: it must be from 1 to 65536"):
        ResNet18((3, 8, 8), width=0)


@pytest.mark.processes
def test_narrow_networks_on_larger_images_do_not_write_where_they_must_not() -> None:
    # A fault of the library below kills the process, now or later, so it has one of its own.
    program = (
        "import torch; from pinoise.networks import ResNet18; torch.set_num_threads(1); "
        "network = ResNet18((3, 64, 64), width=4).to(memory_format=torch.channels_last); "
        "network(torch.randn(256, 3, 64, 64)).sum().backward(); "
        "print(all(bool(weight.grad.isfinite().all()) for weight in network.parameters()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
