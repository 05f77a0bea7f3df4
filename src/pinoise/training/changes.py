"""Which settings a run may change when it goes on, and which its checkpoints belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

# The settings that a run may change when it goes on: they do not decide what is learned.
MAY_CHANGE = (
    *("training.epochs", "training.device", "training.devices", "training.nodes"),
    *("training.checkpoint_every", "training.wait", "training.patience", "training.min_improvement"),
)

_ABSENT = "absent"


def forbidden_change(now: str, then: str) -> str | None:
    """Return what differs between settings now and then, both as YAML, if a run cannot go on with it.

    >>> forbidden_change('{"method": {"temperature": 0.2}}', '{"method": {"temperature": 0.5}}')
    'method.temperature is 0.2 in config.yaml and 0.5 in'
    >>> forbidden_change('{"training": {"epochs": 3}}', '{"training": {"epochs": 9}}')
    """
    for path, new, old in _differences(yaml.safe_load(now), yaml.safe_load(then)):
        holds_out = path == "training.patience" and None in (new, old)  # then the rows that are trained on would change
        if path not in MAY_CHANGE or holds_out:
            return f"{path} is {_said(new)} in config.yaml and {_said(old)} in"
    return None


def _differences(now: Any, then: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(now, Mapping) or not isinstance(then, Mapping):
        if json.dumps(now, sort_keys=True) != json.dumps(then, sort_keys=True):
            yield path, now, then
        return
    for key in [*now, *(key for key in then if key not in now)]:
        yield from _differences(now.get(key, _ABSENT), then.get(key, _ABSENT), f"{path}.{key}" if path else key)


def _said(value: Any) -> str:
    return value if value == _ABSENT else json.dumps(value)
