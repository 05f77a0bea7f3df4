"""Ways to damage bytes and nested values, each a function of what it damages and of random numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.hostile.case import Generator

Mutation = Callable[[bytes, Generator], bytes]


def flip(content: bytes, rng: Generator) -> bytes:
    """Flip one bit."""
    changed = bytearray(content)
    if changed:
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(content: bytes, rng: Generator) -> bytes:
    """Cut off the end."""
    return content[: int(rng.integers(len(content) + 1))]


def cut(content: bytes, rng: Generator) -> bytes:
    """Take out a piece."""
    start = int(rng.integers(len(content) + 1))
    return content[:start] + content[start + int(rng.integers(1, 64)) :]


def insert(content: bytes, rng: Generator) -> bytes:
    """Put random bytes in."""
    start = int(rng.integers(len(content) + 1))
    return content[:start] + rng.bytes(int(rng.integers(1, 32))) + content[start:]


def zero(content: bytes, rng: Generator) -> bytes:
    """Overwrite a piece with zeros, as a file system may after a crash."""
    start = int(rng.integers(len(content) + 1))
    length = min(int(rng.integers(1, 512)), len(content) - start)
    return content[:start] + bytes(length) + content[start + length :]


def empty(content: bytes, rng: Generator) -> bytes:
    """Leave nothing."""
    return b""


BYTES: tuple[Mutation, ...] = (flip, truncate, insert, zero, cut, empty)

DEEP: Any = "end"
for _ in range(60):
    DEEP = [DEEP]
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2**31, 2**63, 2**64, 10**30, 1e308, 1e-320, 0.5, -0.5),
    *("", "x", "1", "nan", "\x1b[31m", "a\nb", "\ud83d\udca3", "../../x", "os:system", "x" * 3000),
    *([], {}, [1, 2, 3], [None], {"name": "x"}, {"name": None}, {"": 0}, DEEP),
)
"""Values of other types and sizes than a reader expects."""


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in nested lists and mappings.

    >>> paths({"a": [1]})
    [('a',), ('a', 0)]
    """
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, item in inner for path in ((*at, key), *paths(item, (*at, key)))]


def mutate_value(value: Any, rng: Generator) -> Any:
    """Replace, remove or add one value somewhere in nested lists and mappings."""
    changed = copy.deepcopy(value)
    found = paths(changed)
    path = found[int(rng.integers(len(found)))]
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    match int(rng.integers(8)):
        case 0:
            del holder[path[-1]]
        case 1 if isinstance(holder, dict):
            holder["unheard-of"] = pick(VALUES, rng)
        case 2:
            holder[path[-1]] = [copy.deepcopy(holder[path[-1]])] * 2
        case _:
            holder[path[-1]] = pick(VALUES, rng)
    return changed


def pick(items: Any, rng: Generator) -> Any:
    """Return one of several things."""
    return items[int(rng.integers(len(items)))]
