from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.methods.problems import batches
from torch import nn

from pinoise.errors import UserError
from pinoise.methods import DINO, dino_loss
from pinoise.networks.mlp import PrototypeHead


def slow_softmax(scores: list[float]) -> list[float]:
    terms = [math.exp(score - max(scores)) for score in scores]
    return [term / sum(terms) for term in terms]


def slow_dino(student: np.ndarray, teacher: np.ndarray, centre: np.ndarray, tau_s: float, tau_t: float) -> list[float]:
    """One sample, one pair of views and one prototype at a time, from scores (views, m, prototypes)."""
    losses = []
    for i in range(student.shape[1]):
        terms = []
        for g in range(len(teacher)):
            wanted = slow_softmax([(float(t) - float(c)) / tau_t for t, c in zip(teacher[g, i], centre, strict=True)])
            for v in range(len(student)):
                if v == g:
                    continue
                said = slow_softmax([float(s) / tau_s for s in student[v, i]])
                terms.append(-sum(w * math.log(p) for w, p in zip(wanted, said, strict=True)))
        losses.append(sum(terms) / len(terms))
    return losses


def image_encoder() -> nn.Module:
    """Takes images of any size of at least 3 pixels."""
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.out_features = 4  # type: ignore[assignment]
    return network


def prototypes(in_features: int) -> PrototypeHead:
    return PrototypeHead(in_features, hidden=8, bottleneck=6, prototypes=7)


@pytest.mark.parametrize("views", [2, 3, 6])
@pytest.mark.parametrize(("temperature", "teacher_temperature"), [(0.1, 0.04), (1.0, 0.5)])
def test_agrees_with_one_pair_of_views_at_a_time(views: int, temperature: float, teacher_temperature: float) -> None:
    student, teacher, centre = torch.randn(views, 4, 7) / 3, torch.randn(2, 4, 7) / 3, torch.randn(7) / 3
    found = dino_loss(student, teacher, centre, temperature=temperature, teacher_temperature=teacher_temperature)
    expected = slow_dino(student.numpy(), teacher.numpy(), centre.numpy(), temperature, teacher_temperature)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_gradient_agrees_with_finite_differences() -> None:
    student, teacher = torch.randn(3, 2, 4, dtype=torch.float64), torch.randn(2, 2, 4, dtype=torch.float64)
    centre = torch.randn(4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda s: dino_loss(s, teacher, centre), (student.requires_grad_(),))


def test_local_crops_of_another_size_meet_both_teacher_views_in_one_pass_per_size() -> None:
    method = DINO(image_encoder(), prototypes(4))
    for parameter in method.teacher.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    method.centre.normal_()
    crops = [torch.randn(3, 1, size, size) for size in (8, 8, 5, 5, 5)]
    passes: dict[str, list[tuple[int, ...]]] = {"student": [], "teacher": []}
    method.encoder.register_forward_pre_hook(lambda module, x: passes["student"].append(tuple(x[0].shape)))
    method.teacher.register_forward_pre_hook(lambda module, x: passes["teacher"].append(tuple(x[0].shape)))
    losses = method(batches(*crops))
    assert passes == {"student": [(6, 1, 8, 8), (9, 1, 5, 5)], "teacher": [(6, 1, 8, 8)]}
    with torch.no_grad():
        student = np.stack([method.head(method.encoder(crop)).numpy() for crop in crops])
        teacher = np.stack([method.teacher(crop).numpy() for crop in crops[:2]])
    expected = slow_dino(student, teacher, method.centre.numpy(), 0.1, 0.04)
    np.testing.assert_allclose(losses.detach().numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_centre_follows_the_mean_of_the_teachers_output() -> None:
    encoder = nn.Linear(4, 5)
    method = DINO(encoder, prototypes(5), centre_momentum=0.8)
    centre = [0.0] * 7
    for step in range(5):
        views = torch.randn(2, 3, 4)
        outputs = method.teacher(views.flatten(0, 1)).tolist()
        method(batches(*torch.randn(2, 3, 4)))  # an earlier look of the same step
        method(batches(*views))
        method.after_step(step, 5)
        means = [sum(row[k] for row in outputs) / 6 for k in range(7)]
        centre = [0.8 * c + 0.2 * mean for c, mean in zip(centre, means, strict=True)]
        np.testing.assert_allclose(method.centre.numpy(), centre, atol=1e-6)
        with torch.no_grad():
            encoder.weight += 0.1
    before = method.centre.clone()
    method.after_step(5, 5)
    assert torch.equal(method.centre, before)


def test_guessing_has_the_loss_of_a_student_to_whom_all_prototypes_are_alike() -> None:
    head = prototypes(5)
    nn.init.ones_(head.prototypes.weight)
    method = DINO(nn.Linear(4, 5), head)
    losses = method(batches(*torch.randn(4, 3, 4)))
    assert losses.tolist() == pytest.approx([method.guessing_loss(3)] * 3)
    assert method.guessing_loss(3) == pytest.approx(math.log(7))


@pytest.mark.parametrize("name", ["momentum", "centre_momentum"])
def test_a_momentum_outside_its_range_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=rf"^{name} is nan: it must be from 0 to 1"):
        DINO(nn.Linear(4, 5), prototypes(5), **{name: math.nan})
