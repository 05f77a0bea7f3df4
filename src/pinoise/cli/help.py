"""How the command shows its options: plain words for values, nothing for flags, defaults where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import typer.core

_WORDS: dict[type, str] = {Path: "PATH", int: "N", float: "NUMBER", str: "NAME"}


def in_plain_words(parameters: Sequence[Any]) -> list[Any]:
    """Return parameters that show a word for their value. Typer would show its type, as in ``<list[str]>``."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type = lambda ctx: ""  # its name, which stands before, says enough
            parameter.get_usage_pieces = partial(_usage, parameter)
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _word(parameter)
    return list(parameters)


def _usage(argument: Any, ctx: Any) -> list[str]:
    name = argument.metavar or argument.name.upper()
    name = f"{name}..." if argument.nargs != 1 else name
    return [name if argument.required else f"[{name}]"]


def _word(option: Any) -> str | None:
    """Return a word for the values of an option; None leaves it to typer, in versions that have words of their own."""
    annotation = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    inner = next(iter(get_args(annotation)), annotation)
    return next((word for kind, word in _WORDS.items() if isinstance(inner, type) and issubclass(inner, kind)), None)


class PlainCommand(typer.core.TyperCommand):
    """A command whose help has plain words."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with words for their values."""
        return in_plain_words(super().get_params(ctx))


class PlainGroup(typer.core.TyperGroup):
    """A group of commands whose help has plain words."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with words for their values."""
        return in_plain_words(super().get_params(ctx))
