"""What a view can ask about its place, and every view that needs no files built there by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinoise.choices import VIEW, find, options_of
from pinoise.errors import UserError
from pinoise.networks import MLPEncoder, ProjectionHead
from pinoise.noise.support import SUPPORT_ROWS
from pinoise.views import (
    Batch,
    FunctionView,
    GaussianNoise,
    Identity,
    ImagePipeline,
    Mixup,
    Neighbour,
    ScarfSwap,
    Site,
    View,
    Viewmaker,
    VimeSwap,
)

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


def build(name: str, site: Site, **options: Any) -> tuple[View, ...]:
    if name in ("simclr", "byol"):
        pytest.importorskip("kornia", reason="needs the extra 'vision'")
    built = find(VIEW, name).build(site, **options)
    return built if isinstance(built, tuple) else (built,)


def some(site: Site) -> Batch:
    rows = torch.randperm(ROWS)[:8]
    return Batch(site.rows[rows], rows)


def test_every_view_is_for_vectors_or_for_images() -> None:
    assert set(IMAGE_VIEWS) == {"simclr", "byol", "crop"}
    assert {*VECTOR_VIEWS, *IMAGE_VIEWS, "background"} == set(VIEW.names)


@pytest.mark.parametrize(("name", "shape"), [*((n, (4,)) for n in VECTOR_VIEWS), *((n, IMAGE) for n in VIEW.names)])
def test_every_view_that_needs_no_files_is_built_by_its_name_and_works(name: str, shape: tuple[int, ...]) -> None:
    if name == "background":
        with pytest.raises(UserError, match="background"):
            build(name, make_site(shape))
        return
    site = make_site(shape)
    batch = some(site)
    views = build(name, site)
    assert len(views) == (4 if name == "modals" else 1)
    for number, view in enumerate(views):
        assert isinstance(view, View)
        first, second = view.draw(batch, 2)
        assert first.x.shape == batch.x.shape
        assert bool(first.x.isfinite().all())
        assert torch.equal(first.rows, batch.rows)
        assert bool((first.x != batch.x).any()) == (name != "identity")
        if name != "identity" and (name, number) != ("modals", 1):  # extrapolation draws nothing
            assert not torch.equal(first.x, second.x)


BUILT: dict[str, tuple[type[View], dict[str, Any], Callable[[Any, Site], bool]]] = {
    "identity": (Identity, {}, lambda view, site: True),
    "gaussian": (GaussianNoise, {"sigma": 0.3}, lambda view, site: torch.equal(view.feature_scale, site.unit)),
    "scarf": (ScarfSwap, {"rate": 0.2}, lambda view, site: torch.equal(view.bank, site.rows[torch.arange(ROWS)])),
    "vime": (VimeSwap, {"rate": 0.2}, lambda view, site: True),
    "dacl": (Mixup, {"alpha": 0.4}, lambda view, site: True),
    "viewmaker": (Viewmaker, {"budget": 0.2}, lambda view, site: torch.equal(view.feature_scale, site.unit)),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_view_takes_its_options_and_what_it_needs_of_its_place(name: str) -> None:
    kind, options, fits = BUILT[name]
    site = make_site()
    (view,) = build(name, site, **options)
    assert type(view) is kind
    assert {option: getattr(view, option) for option in options} == options
    assert set(options) <= set(options_of(find(VIEW, name)))
    assert fits(view, site)


def test_neighbours_are_the_nearest_training_rows_as_they_are() -> None:
    site = make_site()
    (view,) = build("neighbours", site, k=3)
    assert isinstance(view, Neighbour)
    assert (view.support.k, view.support.mutual, view.support.rows) == (3, False, ROWS)
    data = site.rows[torch.arange(ROWS)]
    nearest = torch.cdist(data, data).argsort(dim=1)[:, 1:4]
    found = view.support.neighbours(data, torch.arange(ROWS))
    assert [set(row) for row in found.positions.tolist()] == [set(row) for row in nearest.tolist()]
    assert bool(found.eligible.all())


def test_many_rows_are_too_many_for_neighbours_and_not_for_marginals() -> None:
    site = make_site(rows=torch.randn(SUPPORT_ROWS + 10, 4))
    (neighbours,), (scarf,) = build("neighbours", site), build("scarf", site)
    assert isinstance(neighbours, Neighbour)
    assert isinstance(scarf, ScarfSwap)
    assert (len(neighbours.support.bank), len(scarf.bank)) == (SUPPORT_ROWS, SUPPORT_ROWS + 10)


@pytest.mark.parametrize("name", ["simclr", "byol"])
def test_an_image_pipeline_has_the_units_of_the_pixels_and_its_strength(name: str) -> None:
    site = make_site(IMAGE)
    (view,) = build(name, site, strength=0.25)
    assert isinstance(view, ImagePipeline)
    assert view.strength == 0.25
    assert list(options_of(find(VIEW, name))) == ["strength"]
    assert site.pixel_mean is not None
    assert torch.equal(view.mean.flatten(), site.pixel_mean)


@pytest.mark.parametrize("name", IMAGE_VIEWS)
def test_a_view_of_images_is_refused_where_there_are_none(name: str) -> None:
    with pytest.raises(UserError, match=rf"the view '{name}' is for images: these samples have shape \(4,\)"):
        build(name, make_site())


@pytest.mark.parametrize("name", VECTOR_VIEWS)
def test_an_option_that_a_view_does_not_have_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match="strenght"):
        build(name, make_site(), strenght=0.3)


def test_a_view_of_a_users_own_is_built_from_its_options_alone() -> None:
    class Shift(View):
        def __init__(self, *, by: float = 1.0) -> None:
            super().__init__()
            self.by = by

        def forward(self, batch: Batch) -> Batch:
            return batch.moved(batch.x + self.by)

    site = make_site()
    view = Shift.build(site, by=3.0)
    assert isinstance(view, Shift)
    batch = some(site)
    torch.testing.assert_close(view(batch).x, batch.x + 3)
    assert list(options_of(Shift)) == ["by"]
    assert not isinstance(view, FunctionView)


def test_a_site_knows_the_shape_of_a_sample_and_the_width_of_the_encoder() -> None:
    site = make_site(IMAGE)
    assert (site.shape, site.features) == (IMAGE, 5)
    mean, scale = site.pixel_units("this")
    assert mean is site.pixel_mean
    assert scale is site.pixel_scale


def test_a_head_of_a_site_is_fresh_and_of_its_sizes() -> None:
    site = make_site()
    first, second = site.projection_head(), site.projection_head()
    assert isinstance(first, ProjectionHead)
    widths = [(layer.in_features, layer.out_features) for layer in first if isinstance(layer, nn.Linear)]
    assert widths == [(5, 7), (7, 6)]
    assert not torch.equal(next(first.parameters()), next(second.parameters()))


@pytest.mark.parametrize("stated", [None, 5.0])
def test_an_encoder_without_a_stated_size_is_refused(stated: Any) -> None:
    class Encoder(nn.Module):
        out_features = stated

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(UserError, match=r"the encoder Encoder does not state its output size: set its integer"):
        _ = make_site(encoder=Encoder()).features


def test_pixels_are_refused_where_samples_have_none() -> None:
    with pytest.raises(UserError, match=r"views.local_crops is for images: these samples have shape \(4,\)"):
        make_site().pixel_units("views.local_crops")
