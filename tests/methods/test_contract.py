"""What every method of this folder keeps to, whatever its loss."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from pinoise.methods import (
    BYOL,
    DINO,
    Method,
    MoCo,
    Momentum,
    SimCLR,
    SimSiam,
    byol_loss,
    cosine_momentum,
    dino_loss,
    info_nce,
    negative_cosine,
)
from pinoise.networks import MLPEncoder, ProjectionHead
from pinoise.networks.mlp import BatchNormHead, PredictionHead, PrototypeHead, SimSiamHead
from pinoise.noise import PiNoise
from pinoise.views import Batch

ROWS = 24
METHODS = ["simclr", "moco", "byol", "simsiam", "dino"]
FOLLOWED = {"moco": "key_network", "byol": "target_network", "dino": "teacher"}
Shape = tuple[int, ...]


def image_encoder(channels: int) -> nn.Module:
    network = nn.Sequential(
        nn.Conv2d(channels, 5, 3, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    network.out_features = 5  # type: ignore[assignment]
    return network


def make(name: str, shape: Shape = (4,)) -> Method:
    encoder = MLPEncoder(shape, hidden=8, out_features=5) if len(shape) == 1 else image_encoder(shape[0])
    makers: dict[str, Callable[[], Method]] = {
        "simclr": lambda: SimCLR(encoder, ProjectionHead(5, hidden=8, out_features=6)),
        "moco": lambda: MoCo(encoder, BatchNormHead(5, hidden=8, out_features=6), queue=16),
        "byol": lambda: BYOL(encoder, BatchNormHead(5, hidden=8, out_features=6), PredictionHead(6, hidden=8)),
        "simsiam": lambda: SimSiam(encoder, SimSiamHead(5, hidden=8, out_features=6), PredictionHead(6, hidden=4)),
        "dino": lambda: DINO(encoder, PrototypeHead(5, hidden=8, bottleneck=4, prototypes=7)),
    }
    return makers[name]()


def draw(shape: Shape = (4,), m: int = 5) -> list[Batch]:
    rows = torch.randperm(ROWS)[:m]
    x = torch.randn(m, *shape)
    return [Batch(x + 0.3 * torch.randn_like(x), rows) for _ in range(2)]


def snapshot(method: Method) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in method.state_dict().items()}


def train(method: Method, first: int, last: int, *, steps: int = 8, seed: int = 0) -> None:
    """Take steps, each with random numbers of its own."""
    optimizer = torch.optim.SGD([p for p in method.parameters() if p.requires_grad], lr=0.1)
    for step in range(first, last):
        torch.manual_seed(1000 * seed + step)
        optimizer.zero_grad()
        method(draw()).mean().backward()
        optimizer.step()
        method.after_step(step, steps)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("shape", [(4,), (2, 8, 8)])
def test_one_finite_loss_per_sample_of_vectors_and_images(name: str, shape: Shape) -> None:
    method = make(name, shape)
    losses = method(draw(shape))
    assert losses.shape == (5,)
    assert losses.dtype == torch.float32
    assert bool(losses.isfinite().all())
    losses.mean().backward()
    method.after_step(0, 10)
    assert method.eval().embed(torch.randn(3, *shape)).shape == (3, 5)


@pytest.mark.parametrize("name", METHODS)
def test_every_weight_that_can_learn_gets_a_gradient_and_no_other(name: str) -> None:
    method = make(name)
    method(draw(m=8)).mean().backward()
    frozen = {id(p) for part in method.modules() if isinstance(part, Momentum) for p in part.parameters()}
    for parameter_name, parameter in method.named_parameters():
        assert parameter.requires_grad == (id(parameter) not in frozen), parameter_name
        assert (parameter.grad is None) == (id(parameter) in frozen), parameter_name
    assert bool(frozen) == (name in FOLLOWED)


@pytest.mark.parametrize("name", METHODS)
def test_a_forward_pass_in_eval_mode_leaves_no_trace(name: str) -> None:
    method = make(name)
    train(method, 0, 2)
    method.eval()
    before = snapshot(method)
    method(draw())
    for key, value in method.state_dict().items():
        assert torch.equal(value, before[key]), key
    twin = copy.deepcopy(method)
    twin(draw())
    for one in (method, twin):
        one.train().after_step(3, 8)
    for key, value in method.state_dict().items():
        assert torch.equal(value, twin.state_dict()[key]), key
        if key in ("queue", "queue_rows", "position", "centre"):
            assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_slow_network_is_a_naive_moving_average(name: str) -> None:
    method = make(name)
    steps, base = 8, method.momentum
    assert isinstance(base, float)
    sources = [*method.encoder.parameters(), *method.head.parameters()]
    average = [parameter.detach().double().clone() for parameter in sources]
    for step in range(steps):
        train(method, step, step + 1, steps=steps)
        kept = base if name == "moco" else cosine_momentum(step, steps, base)
        average = [kept * a + (1 - kept) * p.detach().double() for a, p in zip(average, sources, strict=True)]
    slow = getattr(method, FOLLOWED[name])
    for found, expected in zip(slow.parameters(), average, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6)


def term_of_the_first_view(method: Method, online: Tensor, views: list[Batch]) -> Tensor:
    """The part of the summed loss in which the first view is learned through, everything else constant."""
    with torch.no_grad():
        if isinstance(method, MoCo | BYOL | DINO):
            slow = getattr(method, FOLLOWED[type(method).__name__.lower()])(views[1].x)
        else:
            slow = method.head(method.encoder(views[1].x))
    z = method.head(method.encoder(online))
    if isinstance(method, MoCo):
        own = method.queue_rows == views[0].rows[:, None]
        return info_nce(z, slow, method.queue, own=own, temperature=method.temperature).sum() / 2
    if isinstance(method, BYOL):
        return byol_loss(method.predictor(z), slow).sum()
    if isinstance(method, SimSiam):
        return negative_cosine(method.predictor(z), slow).sum() / 2
    assert isinstance(method, DINO)
    student = torch.stack([z.new_zeros(z.shape), z])  # only the pair of the teacher's other view and this one counts
    teacher = torch.stack([slow, slow])
    return dino_loss(student, teacher, method.centre).sum() - dino_loss(student.detach(), teacher, method.centre).sum()


@pytest.mark.parametrize("name", ["moco", "byol", "simsiam", "dino"])
def test_noise_learns_through_the_online_branch_and_not_through_the_target(name: str) -> None:
    method = make(name).double()
    train(method.float(), 0, 3)
    method.double().eval()  # batch normalisation would let samples meet in the branches
    views = [Batch(batch.x.double(), batch.rows) for batch in draw()]
    noise = torch.zeros_like(views[0].x).requires_grad_()
    noisy = [views[0].moved(views[0].x + noise), views[1]]
    (found,) = torch.autograd.grad(method(noisy).sum(), noise)
    (expected,) = torch.autograd.grad(term_of_the_first_view(method, views[0].x + noise, views), noise)
    assert bool((found.abs().sum(dim=1) > 0).all())
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("noisy_side", [0, 1])
def test_noise_in_either_view_learns(name: str, noisy_side: int) -> None:
    method, noise = make(name), PiNoise(4, hidden=16)
    views = draw()
    views[noisy_side] = views[noisy_side].moved(noise(views[noisy_side].x))
    gradients = torch.autograd.grad(method(views).sum(), list(noise.parameters()))
    assert all(bool((gradient != 0).any()) for gradient in gradients)


@pytest.mark.parametrize("name", METHODS)
def test_weights_can_be_held_constant_while_noise_learns(name: str) -> None:
    method = make(name)
    views = draw()
    noise = torch.zeros_like(views[0].x).requires_grad_()
    noisy = [views[0].moved(views[0].x + noise), views[1]]
    frozen = {key: weight.detach() for key, weight in method.named_parameters()}
    torch.manual_seed(0)
    losses = functional_call(method, frozen, (noisy,))
    torch.manual_seed(0)
    torch.testing.assert_close(losses, method(noisy))
    losses.sum().backward()
    assert noise.grad is not None
    assert all(parameter.grad is None for parameter in method.parameters())
    method.after_step(0, 10)


@pytest.mark.parametrize("name", METHODS)
def test_known_features_spare_the_encoder_a_pass(name: str) -> None:
    method = make(name).eval()
    views = draw()
    torch.manual_seed(0)
    expected = method(views)
    views[0] = views[0]._replace(features=method.encoder(views[0].x))
    sizes: list[int] = []
    method.encoder.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    torch.manual_seed(0)
    torch.testing.assert_close(method(views), expected)
    assert sizes == [5]


@pytest.mark.parametrize("name", METHODS)
def test_half_precision_passes_and_full_precision_remembers(name: str) -> None:
    method = make(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = method(draw())
    losses.mean().backward()
    method.after_step(0, 10)
    assert bool(losses.isfinite().all())
    assert all(value.dtype in (torch.float32, torch.int64) for value in method.state_dict().values())
    assert all(bool(value.isfinite().all()) for value in method.state_dict().values())


@pytest.mark.parametrize("name", METHODS)
def test_a_training_pass_compiles_into_one_graph(name: str) -> None:
    method, views = make(name), draw()
    expected = copy.deepcopy(method)
    compiled = torch.compile(method, backend="eager", fullgraph=True)
    for _ in range(2):
        torch.manual_seed(0)
        found = compiled(views)
        torch.manual_seed(0)
        torch.testing.assert_close(found, expected(views))
        for one in (method, expected):
            one.after_step(0, 10)
    for key, value in method.state_dict().items():
        torch.testing.assert_close(value, expected.state_dict()[key])
