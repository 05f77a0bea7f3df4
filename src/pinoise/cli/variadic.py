"""Options that take several values in a row: ``--methods raw fixed scarf``."""

from __future__ import annotations

from typing import Any

import typer.core

VARIADIC = ("--data", "--methods", "--seeds")
_LISTS = ("--methods", "--seeds")  # their values never hold a comma, file names may


def spread(arguments: list[str]) -> list[str]:
    """Repeat a variadic option before each of its values, and split lists at commas.

    >>> spread(["--methods", "raw", "fixed,scarf", "--json"])
    ['--methods', 'raw', '--methods', 'fixed', '--methods', 'scarf', '--json']
    """
    result: list[str] = []
    option: str | None = None
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("-"):
            option = name if name in VARIADIC else None
            if option is not None and not equals:
                continue
            argument = value if option is not None else argument
        if option is None:
            result.append(argument)
        else:
            for part in argument.split(",") if option in _LISTS else [argument]:
                result += [option, part]
    return result


class VariadicCommand(typer.core.TyperCommand):
    """A command whose variadic options may be followed by several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spread the arguments, then parse them as usual."""
        return super().parse_args(ctx, spread(args))
