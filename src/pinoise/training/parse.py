"""From files, flags and ``--set`` to settings, with one clear sentence for each mistake."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import yaml
from pydantic import BaseModel, ValidationError

from pinoise.errors import UserError
from pinoise.training.settings import Settings


def parse_settings(values: Mapping[str, Any], *, names: Mapping[str, str] | None = None) -> Settings:
    """Validate a nested mapping; ``names`` says what the caller's user calls a setting, where that differs.

    >>> parse_settings({"training": {"epochs": 3}}).training.epochs
    3
    >>> parse_settings({"training": {"epoch": 3}})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown setting 'training.epoch': did you mean 'training.epochs'?
    """
    try:
        return Settings.model_validate(_plain(values))
    except ValidationError as error:
        raise UserError(_sentence(error, names)) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration file as nested values."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UserError(f"{path} is not valid YAML.") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a configuration: it must hold sections such as training and method.")
    return values


def merge(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values with changes laid over them, section by section; a new name replaces a section.

    >>> merge({"method": {"name": "clae", "weight": 2}, "training": {"epochs": 5}}, {"training": {"seed": 1}})
    {'method': {'name': 'clae', 'weight': 2}, 'training': {'epochs': 5, 'seed': 1}}
    >>> merge({"method": "clae"}, {"method": {"weight": 2}})
    {'method': {'name': 'clae', 'weight': 2}}
    """
    merged = dict(values)
    for key, change in changes.items():
        before = merged.get(key)
        if isinstance(before, str) and isinstance(change, Mapping):
            before = {"name": before}
        mergeable = isinstance(before, Mapping) and isinstance(change, Mapping) and "name" not in change
        merged[key] = merge(before, change) if mergeable and before is not None else change
    return merged


def override(values: dict[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """Apply ``section.key=value`` assignments, values written as in YAML, to a nested mapping.

    >>> override({"method": "clae"}, ["method.weight=2", "training.epochs=5"])
    {'method': {'name': 'clae', 'weight': 2}, 'training': {'epochs': 5}}
    """
    values = dict(values)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise UserError(f"--set got {assignment!r}: write section.key=value, for example training.epochs=50.")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise UserError(f"--set got {assignment!r}: the value is not valid YAML.") from None
        _assign(values, keys, value)
    return values


def _assign(values: dict[str, Any], keys: list[str], value: Any) -> None:
    for depth, key in enumerate(keys[:-1], start=1):
        inner = values.get(key) or {}
        if not isinstance(inner, str | Mapping):
            raise UserError(f"--set got {'.'.join(keys)!r}: {'.'.join(keys[:depth])!r} is a value, not a section.")
        values[key] = {"name": inner} if isinstance(inner, str) else dict(inner)
        values = values[key]
    values[keys[-1]] = value


def _plain(value: Any) -> Any:
    """Turn numpy's numbers, which grids of parameters are made of, into Python's."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _sentence(error: ValidationError, names: Mapping[str, str] | None) -> str:
    """Say the first thing that is wrong, in the user's terms."""
    first = error.errors()[0]
    if not first["loc"]:  # sections that contradict each other
        return f"{first['ctx']['error']}."
    path, section = _locate(first["loc"])
    name = ".".join(path)
    if names is not None:
        name = names.get(name, path[-1])
    found = first["input"]
    match first["type"]:
        case "extra_forbidden":
            allowed = list(section.model_fields)
            parents = path[:-1]
            near = difflib.get_close_matches(path[-1], allowed, n=1, cutoff=0.4)
            if near:
                return f"unknown setting {name!r}: did you mean {'.'.join([*parents, near[0]])!r}?"
            return f"unknown setting {name!r}: allowed there are {', '.join(allowed)}."
        case "missing":
            return f"setting {name!r} is missing: {path[0]} {found.get('name')!r} needs it."
        case "union_tag_invalid":
            return _unknown_name(name, first["ctx"]["tag"], _words(first["ctx"]["expected_tags"]))
        case "literal_error":
            same = [other["ctx"]["expected"] for other in error.errors() if _locate(other["loc"])[0] == path]
            return _unknown_name(name, found, [word for expected in same for word in _words(expected)])
        case "model_type":
            return (
                f"setting {name!r} is {found!r}: it is a section, with the settings {', '.join(section.model_fields)}."
            )
        case _:
            message = first["msg"][0].lower() + first["msg"][1:]
            return f"setting {name!r} is {found!r}: {message}."


def _words(listing: str) -> list[str]:
    return listing.replace("'", "").replace(" or ", ", ").split(", ")


def _unknown_name(path: str, found: object, allowed: list[str]) -> str:
    near = difflib.get_close_matches(str(found), allowed, n=1, cutoff=0.4)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return f"setting {path!r} is {found!r}{hint} Allowed: {', '.join(allowed)}."


def _locate(location: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel]]:
    """Return the path as the user writes it and the section it ends in, without pydantic's tags of unions."""
    path: list[str] = []
    section: type[BaseModel] = Settings
    choices: dict[str, type[BaseModel]] = {}
    for part in location:
        if part in choices:
            section = choices[str(part)]
            choices = {}
            continue
        if str(part).startswith("literal["):
            continue
        path.append(str(part))
        field = section.model_fields.get(str(part))
        if field is not None:
            models = list(_models_in(field.annotation))
            choices = {
                str(model.model_fields["name"].default): model for model in models if "name" in model.model_fields
            }
            section = models[0] if len(models) == 1 else section
    return path, section


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
