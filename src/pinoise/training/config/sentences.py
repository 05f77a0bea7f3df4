"""The sentence for a mistake in a section of the configuration."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import get_args

from pydantic import BaseModel, ValidationError

from pinoise.errors import UserError, brief, not_among


def sentence_of(
    error: ValidationError, section: type, *, prefix: str = "", names: Mapping[str, str] | None = None
) -> str:
    """Return one sentence about the first mistake, in the user's terms.

    Args:
        error: what pydantic found.
        section: the section that was read.
        prefix: the path of that section in the configuration, with a dot at the end.
        names: the user's names of settings, by path, if they differ from the paths.
    """
    first = error.errors()[0]
    if not first["loc"]:  # sections that contradict each other
        sentence = f"{first['ctx']['error']}."
        return sentence if names is None else re.sub(rf"\b(?:{'|'.join(keys_of(section))})\.(\w+)", r"\1", sentence)
    path, holder = _locate(first["loc"], section)
    name = prefix + ".".join(path)
    if first["type"] == "choice":
        try:
            first["ctx"]["read"](name, names=names)
        except UserError as mistake:
            return str(mistake)
    if names is not None:
        name = names.get(name, path[-1])
    found = first["input"]
    match first["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return _unknown_setting(name, prefix, path, keys_of(holder))
        case "missing":
            return f"setting {name!r} is missing: {prefix.rstrip('.')} needs it."
        case "literal_error":
            allowed = re.findall(r"'(.*?)'", first["ctx"]["expected"])
            return f"setting {name!r} is {not_among(found, allowed)}"
        case "model_type" | "dataclass_type":
            return (
                f"setting {name!r} is {brief(found)}: it must be a section with settings {', '.join(keys_of(holder))}."
            )
        case "value_error":  # from a section that checks itself; its sentence begins with the key
            key, _, rest = str(first["ctx"]["error"]).partition(" ")
            return f"setting {(f'{name}.{key}' if names is None else key)!r} {rest}"
        case _:
            message = first["msg"][0].lower() + first["msg"][1:]
            return f"setting {brief(name)} is {brief(found)}: {message}."


def _unknown_setting(name: str, prefix: str, path: list[str], allowed: list[str]) -> str:
    name = name if len(name) <= 100 else f"{name[:100]}…"
    near = difflib.get_close_matches(path[-1][:100], allowed, n=1, cutoff=0.6)
    if near:
        return f"unknown setting {name!r}: did you mean {prefix + '.'.join([*path[:-1], near[0]])!r}?"
    if not allowed:
        return f"unknown setting {name!r}: {prefix.rstrip('.')} has no settings."
    return f"unknown setting {name!r}: allowed there are {', '.join(allowed)}."


def _locate(location: tuple[int | str, ...], section: type) -> tuple[list[str], type]:
    """Return the path as the user writes it and the section it ends in."""
    path: list[str] = []
    for part in location:
        if path and (part in ("int", "float", "str", "bool") or str(part).startswith(("tuple[", "literal["))):
            continue  # pydantic adds the type that it tried
        path.append(str(part))
        field = getattr(section, "model_fields", {}).get(str(part))
        if field is not None:
            section = next(_sections_in(field.annotation), section)
    return path, section


def _sections_in(annotation: object) -> Iterator[type]:
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections_in(argument)


def keys_of(section: type) -> list[str]:
    """Return the settings of a section."""
    if is_dataclass(section):
        return [field.name for field in fields(section)]
    return list(getattr(section, "model_fields", {}))
