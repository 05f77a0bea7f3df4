"""What a view can ask about its place, and every view that needs no files built there by its name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinoise.choices import VIEW, find
from pinoise.errors import UserError
from pinoise.networks import MLPEncoder
from pinoise.noise.support import SUPPORT_ROWS
from pinoise.views import Batch, Neighbour, ScarfSwap, Site, View

ROWS = 30
IMAGE = (3, 8, 8)
IMAGE_VIEWS = [name for name in VIEW.names if find(VIEW, name).for_images and name != "background"]
VECTOR_VIEWS = [name for name in VIEW.names if not find(VIEW, name).for_images]


def make_site(shape: tuple[int, ...] = (4,), **changes: Any) -> Site:
    torch.manual_seed(0)
    unit = torch.linspace(0.5, 2, 4).reshape(4) if shape == (4,) else torch.ones(shape)
    images: dict[str, Any] = {}
    if len(shape) == 3:
        images = {"pixel_mean": torch.tensor([0.5, 0.4, 0.3]), "pixel_scale": torch.tensor([0.2, 0.25, 0.3])}
    site = Site(
        unit=unit,
        rows=torch.randn(ROWS, *shape) * unit,
        encoder=MLPEncoder(shape, hidden=8, out_features=5),
        head_hidden=7,
        head_features=6,
        batch_size=8,
        **images,
    )
    return dataclasses.replace(site, **changes)


def build(name: str, site: Site, **options: Any) -> View:
    if name in ("simclr", "byol"):
        pytest.importorskip("kornia", reason="needs the extra 'vision'")
    view: View = find(VIEW, name).build(site, **options)
    return view


def some(site: Site) -> Batch:
    rows = torch.randperm(ROWS)[:8]
    return Batch(site.rows[rows], rows)


@pytest.mark.parametrize(("name", "shape"), [*((n, (4,)) for n in VECTOR_VIEWS), *((n, IMAGE) for n in VIEW.names)])
def test_every_view_that_needs_no_files_is_built_by_its_name_and_works(name: str, shape: tuple[int, ...]) -> None:
    if name == "background":
        with pytest.raises(UserError, match="background"):
            build(name, make_site(shape))
        return
    site = make_site(shape)
    batch = some(site)
    first, second = build(name, site).draw(batch, 2)
    assert first.x.shape == batch.x.shape
    assert bool(first.x.isfinite().all())
    assert torch.equal(first.rows, batch.rows)
    assert bool((first.x != batch.x).any()) == (name != "identity")
    assert torch.equal(first.x, second.x) == (name == "identity")


def test_neighbours_are_the_nearest_training_rows_as_they_are() -> None:
    site = make_site()
    view = build("neighbours", site, k=3)
    assert isinstance(view, Neighbour)
    assert (view.support.k, view.support.mutual, view.support.rows) == (3, False, ROWS)
    data = site.rows[torch.arange(ROWS)]
    nearest = torch.cdist(data, data).argsort(dim=1)[:, 1:4]
    found = view.support.neighbours(data, torch.arange(ROWS))
    assert [set(row) for row in found.positions.tolist()] == [set(row) for row in nearest.tolist()]
    assert bool(found.eligible.all())


def test_many_rows_are_too_many_for_neighbours_and_not_for_marginals() -> None:
    site = make_site(rows=torch.randn(SUPPORT_ROWS + 10, 4))
    neighbours, scarf = build("neighbours", site), build("scarf", site)
    assert isinstance(neighbours, Neighbour)
    assert isinstance(scarf, ScarfSwap)
    assert (len(neighbours.support.bank), len(scarf.bank)) == (SUPPORT_ROWS, SUPPORT_ROWS + 10)


@pytest.mark.parametrize("name", IMAGE_VIEWS)
def test_a_view_of_images_is_refused_where_there_are_none(name: str) -> None:
    with pytest.raises(UserError, match=rf"the view '{name}' is for images: these samples have shape \(4,\)"):
        build(name, make_site())


@pytest.mark.parametrize("stated", [None, 5.0])
def test_an_encoder_without_a_stated_size_is_refused(stated: Any) -> None:
    class Encoder(nn.Module):
        out_features = stated

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(UserError, match=r"the encoder Encoder does not state its output size: set its integer"):
        _ = make_site(encoder=Encoder()).features
