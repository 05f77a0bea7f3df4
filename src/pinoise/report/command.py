"""The command that trains a run again, and its settings without the folders of somebody's machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from pinoise.experiments.evaluated import shown_source
from pinoise.training.config import Settings, dump_yaml, parse_settings


def train_command(settings: Settings, out: str, flags: Mapping[str, str] | None = None) -> str:
    """Return the command that trains a run with these settings: all that differ from the defaults.

    Args:
        settings: of the run.
        out: the name of its folder.
        flags: the flag that stands for a setting, such as ``--epochs`` for ``training.epochs``; the others go by
            ``--set``.

    >>> settings = parse_settings({"data": {"source": "/home/me/a.csv"}, "training": {"epochs": 5}})
    >>> train_command(settings, "run", {"training.epochs": "--epochs"})
    'pinoise train --data a.csv --epochs 5 --out run'
    """
    values = settings.model_dump()
    usual = parse_settings(_chosen(values)).model_dump()
    parts = [f"pinoise train --data {shlex.quote(shown_source(settings.data.source))}"]
    for path, value in _differences(values, usual):
        if path == "data.source":
            continue
        parts.append(_option(path, value, dict(flags or {})))
    return " ".join([*parts, f"--out {shlex.quote(out)}"])


def shown_config(values: Mapping[str, Any]) -> str:
    """Return a configuration with the names of files, but without the folders that they are in.

    >>> shown_config({"data": {"source": "/home/me/a.csv", "rows": 3}})
    'data:\\n  source: a.csv\\n  rows: 3\\n'
    """
    return dump_yaml(_without_folders(values))


def _without_folders(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_folders(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_folders(inner) for inner in value]
    if isinstance(value, PurePath) or (isinstance(value, str) and PurePath(value).is_absolute()):
        return PurePath(value).name
    return value


def _chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named parts alone, so that the defaults of their options are theirs."""
    chosen: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner = {"name": value["name"]} if "name" in value else _chosen(value)
            if inner:
                chosen[key] = inner
        elif key == "augmentations" and value:
            chosen[key] = [{"name": part["name"]} for part in value]
    return chosen


def _differences(values: Mapping[str, Any], usual: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings that are not as usual; a part by its name, then its options."""
    for key, value in values.items():
        path = f"{at}.{key}" if at else key
        other = usual.get(key)
        if isinstance(value, Mapping):
            if "name" in value and value["name"] != _DEFAULT_PARTS.get(path):
                yield path, value["name"]
            yield from _differences(value, other if isinstance(other, Mapping) else {}, path)
        elif key == "augmentations":
            if value:
                yield (
                    path,
                    [part["name"] if part == plain else part for part, plain in zip(value, other or [], strict=False)],
                )
        elif value != other and key != "name":
            yield path, value


def _parts(values: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            path = f"{at}.{key}" if at else key
            if "name" in value:
                yield path, value["name"]
            yield from _parts(value, path)


_DEFAULT_PARTS = dict(_parts(Settings().model_dump()))


def _option(path: str, value: Any, flags: dict[str, str]) -> str:
    if path in flags and not isinstance(value, bool):
        values = value if isinstance(value, list | tuple) else [value]
        if all(isinstance(one, str | int | float) for one in values):
            return " ".join(f"{flags[path]} {shlex.quote(str(one))}" for one in values)
    text = dump_yaml(_without_folders(value)).removesuffix("\n").removesuffix("\n...")
    if isinstance(value, list | tuple | dict):
        import json

        text = json.dumps(_without_folders(value), ensure_ascii=False)
    return f"--set {shlex.quote(f'{path}={text}')}"
