"""What every section of the configuration is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Size = Annotated[int, Field(ge=1, le=65_536)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A part of the configuration: immutable, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def named(default: str | None = None) -> BeforeValidator:
    """A section given as a plain name means that name with its defaults; one without a name means the default name."""

    def complete(value: object) -> object:
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, Mapping) and default is not None:
            return {"name": default, **value}
        return value

    return BeforeValidator(complete)


def names_in(union: Any) -> tuple[str, ...]:
    """Return the names that a choice of sections knows.

    >>> from pinoise.training.settings import ObjectiveSettings
    >>> names_in(ObjectiveSettings)
    ('supported', 'paper', 'fixed', 'adversarial', 'information')
    """
    return tuple(section.model_fields["name"].default for section in get_args(get_args(union)[0]))
