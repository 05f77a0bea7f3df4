"""𝒜 and its pairing from settings."""

from __future__ import annotations

import copy
import inspect

from torch import nn

from pinoise.choices import VIEW, PairingName
from pinoise.errors import UserError
from pinoise.noise import SUPPORT_ROWS, Support, draw_bank
from pinoise.training.build.noise import build_noise, support_neighbours
from pinoise.training.build.parts import bound, built, made
from pinoise.training.config import Choice, Settings
from pinoise.training.objectives import Objective
from pinoise.views import FunctionView, Pairing, PiNoiseView, Site, View, local_crops


def build_pairing(settings: Settings, site: Site) -> Pairing:
    """Return the pairing of the views in the settings."""
    noise = _noise_view(settings, site)
    augmentations = [view for item in settings.views.augmentations for view in build_views(item, site)]
    name = settings.views.pairing
    if name == "auto":
        name = _auto_pairing(settings, noise, has_augmentations=bool(augmentations))
    if name == "identity" and not settings.method.trait("makes_views"):
        raise UserError(
            f"method {settings.method.name!r} compares two views: give it a noise (views.noise) or augmentations."
        )
    local = local_crops(site, augmentations) if site.local_crops else None
    return Pairing(name, noise=noise, augmentations=augmentations, local=local, local_views=site.local_crops)


def _noise_view(settings: Settings, site: Site) -> View | None:
    if settings.is_learned:
        neighbours = support_neighbours(settings)
        support = Support.of(site.rows, k=neighbours) if neighbours else None
        donors = None if site.columns is None or support else draw_bank(site.rows, most=SUPPORT_ROWS)[0]
        noise = build_noise(settings, site.unit, site.encoder, support=support, columns=site.columns, donors=donors)
        return PiNoiseView(noise)
    if settings.views.noise.part is None:
        return None
    views = build_views(settings.views.noise, site)
    if len(views) > 1:
        raise UserError(
            f"views.noise is {settings.views.noise.name!r}, which makes {len(views)} views: put it under "
            "views.augmentations."
        )
    return views[0]


def _auto_pairing(settings: Settings, noise: View | None, *, has_augmentations: bool) -> PairingName:
    if has_augmentations:
        return "sampled"
    if noise is None:
        return "identity"
    chosen: PairingName = settings.objective.trait("pairing", Objective.pairing)
    return chosen if noise.learned is not None else Objective.pairing


def build_views(item: Choice, site: Site) -> tuple[View, ...]:
    """Return the view or the views of a choice."""
    part = item.part
    if isinstance(part, nn.Module):
        part = copy.deepcopy(part)
        return (part if isinstance(part, View) else FunctionView(part),)
    if inspect.isclass(part) and issubclass(part, View):
        views = built(VIEW, item, View, 0, site)
        return views if isinstance(views, tuple) else (views,)
    function = made(VIEW, item, part) if inspect.isclass(part) else bound(VIEW, item, 1)
    if not callable(function):
        raise UserError(
            f"view {item.name!r} makes {type(function).__name__}, which is not a function: give {VIEW.own}."
        )
    return (FunctionView(function),)
