"""Every method by its name, built for its place."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinoise.choices import METHOD, find, options_of
from pinoise.errors import UserError
from pinoise.methods import BYOL, DINO, Method, MoCo, SimSiam
from pinoise.networks import BatchNormHead, MLPEncoder, PredictionHead, ProjectionHead, PrototypeHead, SimSiamHead
from pinoise.views import Batch, Site

UNIT = torch.tensor([0.5, 0.0, 2.0, 1.0])
ROWS = 20


def make_site(**changes: Any) -> Site:
    torch.manual_seed(0)
    site = Site(
        unit=UNIT,
        rows=torch.randn(ROWS, 4) * UNIT,
        encoder=MLPEncoder((4,), hidden=8, out_features=5),
        head_hidden=7,
        head_features=6,
        batch_size=8,
    )
    return dataclasses.replace(site, **changes)


def views_of(site: Site, count: int = 2) -> list[Batch]:
    rows = torch.randperm(ROWS)[: site.batch_size]
    x = site.rows[rows]
    return [Batch(x + 0.1 * torch.randn_like(x), rows) for _ in range(count)]


def build(name: str, site: Site, **options: Any) -> Method:
    method = find(METHOD, name).build(site, **options)
    assert isinstance(method, Method)
    return method


@pytest.mark.parametrize("name", METHOD.names)
def test_every_method_is_built_around_the_encoder_and_a_step_lowers_its_loss(name: str) -> None:
    site = make_site()
    method = build(name, site)
    assert method.encoder is site.encoder
    views = views_of(site)

    def losses() -> Tensor:
        torch.manual_seed(1)  # for methods that draw
        found: Tensor = method(views)
        return found

    before = losses()
    assert before.shape == (8,)
    optimizer = torch.optim.SGD([p for p in method.parameters() if p.requires_grad], lr=1e-3)
    before.mean().backward()
    assert all(parameter.grad is not None for parameter in site.encoder.parameters())
    optimizer.step()
    assert float(losses().detach().mean()) < float(before.detach().mean())
    method.after_step(0, 10)
    assert bool(losses().isfinite().all())
    assert method.embed(site.rows[torch.arange(3)]).shape == (3, 5)


@pytest.mark.parametrize("name", METHOD.names)
def test_every_method_says_which_views_it_takes(name: str) -> None:
    site = make_site()
    method = build(name, site)
    assert method.makes_views == (name in ("simcl", "clae"))
    assert method.takes_local_views == (name == "dino")
    if method.makes_views:
        assert method(views_of(site, 1)).shape == (8,)
    else:
        with pytest.raises(UserError, match=r"compares two views( or more)? and was given 1"):
            method(views_of(site, 1))
    if method.takes_local_views:
        assert method(views_of(site, 4)).shape == (8,)
    else:
        with pytest.raises(UserError, match=r"compares two views and was given 4"):
            method(views_of(site, 4))


HEADS: dict[str, type[nn.Module]] = {"byol": BatchNormHead, "simsiam": SimSiamHead, "dino": PrototypeHead}


@pytest.mark.parametrize("name", METHOD.names)
def test_the_head_is_that_of_the_method_in_the_sizes_of_its_place(name: str) -> None:
    method = build(name, make_site())
    head = method.head
    assert type(head) is HEADS.get(name, ProjectionHead)
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    assert (layers[0].in_features, layers[0].out_features) == (5, 7)
    if isinstance(head, PrototypeHead):
        assert (head.prototypes.in_features, head.out_features) == (6, 1024)
    else:
        assert layers[-1].out_features == 6
    if isinstance(method, BYOL | SimSiam):
        assert isinstance(method.predictor, PredictionHead)
        hidden = method.predictor.get_submodule("0").out_features
        assert hidden == (7 if name == "byol" else PredictionHead(6).get_submodule("0").out_features)


OPTIONS: dict[str, dict[str, Any]] = {
    "simclr": {"temperature": 0.7},
    "simcl": {"temperature": 0.7, "strength": 0.4},
    "clae": {"temperature": 0.7, "strength": 0.4, "weight": 0.2, "against": "partner"},
    "moco": {"temperature": 0.7, "momentum": 0.8},
    "byol": {"momentum": 0.8},
    "simsiam": {},
    "dino": {"temperature": 0.7, "teacher_temperature": 0.3, "momentum": 0.8, "centre_momentum": 0.6},
}
SIZES: dict[str, dict[str, Any]] = {"moco": {"queue": 32}, "dino": {"prototypes": 9}}


@pytest.mark.parametrize("name", METHOD.names)
def test_every_option_reaches_the_method(name: str) -> None:
    assert set(options_of(find(METHOD, name))) == {*OPTIONS[name], *SIZES.get(name, {})}
    method = build(name, make_site(), **OPTIONS[name], **SIZES.get(name, {}))
    assert {option: getattr(method, option) for option in OPTIONS[name]} == OPTIONS[name]
    if isinstance(method, MoCo):
        assert len(method.queue) == 32
    if isinstance(method, DINO):
        assert len(method.centre) == 9


@pytest.mark.parametrize(("batch_size", "arriving"), [(8, 16), (16, 32), (100, 40)])
def test_a_queue_that_a_step_would_overrun_is_refused_before_any_work(batch_size: int, arriving: int) -> None:
    site = make_site(batch_size=batch_size)  # a step has no more rows than the data
    build("moco", site, queue=arriving)
    message = rf"queue is {arriving - 1} but a step makes {arriving} keys, two for each of {arriving // 2} rows: make"
    with pytest.raises(UserError, match=message):
        build("moco", site, queue=arriving - 1)
