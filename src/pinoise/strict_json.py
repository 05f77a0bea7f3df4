"""JSON as its standard has it: a number that is not finite becomes null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping


def to_json(value: object) -> str:
    """Return a value as an indented JSON document.

    >>> print(to_json({"loss": 0.5, "sigma": float("nan")}))
    {
      "loss": 0.5,
      "sigma": null
    }
    """
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
