"""Docstrings and signatures as a reader wants them: examples as code, and defaults as values."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent) *\S.*)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Put a fence around every example outside a section of its own; Markdown would take it for a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring and not re.search(r"^\s*Examples:?$", obj.docstring.value, re.MULTILINE):
            obj.docstring.value = fenced(obj.docstring.value)


class Defaults(griffe.Extension):
    """Show the value of a default that is stated as an expression, such as a setting's own default."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Change the defaults of a function's parameters."""
        for parameter in func.parameters:
            if re.match(r"[A-Za-z_]\w*[.\[(]|_?[A-Z][A-Z_]+$", str(parameter.default or "")):
                parameter.default = repr(default_of(func, parameter.name))


def default_of(function: griffe.Function, parameter: str) -> object:
    """Return the value of a parameter's default."""
    found: Any = import_module(function.module.path)
    for name in function.path.removeprefix(function.module.path + ".").split("."):
        found = getattr(found, name)
    return inspect.signature(found).parameters[parameter].default


def fenced(docstring: str) -> str:
    r"""Return a docstring with its examples in fences.

    >>> print(fenced("Add.\n\n>>> 1 + 1\n2\n\nMore."))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
    """
    return _EXAMPLE.sub(lambda found: f"{found['indent']}```pycon\n{found[0]}\n{found['indent']}```", docstring)
