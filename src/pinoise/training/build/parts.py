"""One part from its choice: what its constructor takes is checked before it is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pinoise.choices import Kind, check_call
from pinoise.training.config import Choice, Settings
from pinoise.views import Site


def built(kind: Kind, item: Choice, base: Any, arguments: int, site: Site) -> Any:
    """Build a part from its class. The base class's ``build`` gives the constructor this number of arguments."""
    if item.part.build.__func__ is base.build.__func__:
        check_call(kind, item.name, item.part, arguments, item.options)
    return made(kind, item, item.part.build, site)


def made(kind: Kind, item: Choice, make: Callable[..., Any], *place: object) -> Any:
    """Make a part. Refuse a user's part that cannot be called with these arguments."""
    check_call(kind, item.name, make, len(place), item.options)
    return make(*place, **item.options)


def bound(kind: Kind, item: Choice, arguments: int) -> Callable[..., Any]:
    """Return a user's function with its options bound. Refuse one that does not take this number of arguments."""
    check_call(kind, item.name, item.part, arguments, item.options)
    return partial(item.part, **item.options)


def check_options(settings: Settings) -> None:
    """Refuse options of one part that contradict each other, as far as they can be told without data."""
    for choice in settings.parts.values():
        if not choice.own and (check := choice.trait("check_options", None)) is not None:
            check(choice.options)
