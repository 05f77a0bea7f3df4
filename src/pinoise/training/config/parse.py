"""From files, flags and ``--set`` to settings, with one clear sentence for each mistake.

YAML is as settings use it: plain values of a bounded size, numbers as people write them, and nothing else.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from pinoise.choices import Distrust
from pinoise.errors import UserError, brief, first_line
from pinoise.files import open_regular
from pinoise.training.config.settings import Settings, parse_settings

MOST_CHARACTERS = 1_000_000

_BASE = "tag:yaml.org,2002:"

# YAML 1.1, which PyYAML follows, reads 1e-3 as text, 010 as 8, 1:30 as 90 and 2024-01-01 as a date.
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z|0x[0-9a-fA-F]+\Z")
_DECIMAL = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+[eE][-+]?[0-9]+\Z|[-+]?\.(inf|Inf|INF)\Z"
    r"|\.(nan|NaN|NAN)\Z"
)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2's numbers and no dates, aliases or repeated keys."""

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("settings have no aliases")
        node: Node | None = super().compose_node(parent, index)
        return node

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, ScalarNode):
                raise yaml.YAMLError("a key must be a word")
            if key.value in keys:
                raise yaml.YAMLError(f"it gives {key.value[:80]!r} twice")
            keys.add(key.value)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper. It writes full paths, and quotes text that the loader would read as a number."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag.removeprefix(_BASE) in ("bool", "null")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_BASE) in ("null", "bool", "int", "float", "str", "seq", "map")
}
_Loader.add_implicit_resolver(f"{_BASE}int", _WHOLE, list("-+0123456789"))
_Dumper.add_multi_representer(
    PurePath, lambda dumper, path: dumper.represent_str(str(Path(path).expanduser().resolve()))
)
for _each in (_Loader, _Dumper):
    _each.add_implicit_resolver(f"{_BASE}float", _DECIMAL, list("-+0123456789."))


def load_yaml(text: str, *, where: str) -> Any:
    """Return the value of a YAML document: nested lists and mappings of text, numbers, true, false and null.

    >>> load_yaml("{rate: 1e-3, hidden: [64, 010]}", where="a.yaml")
    {'rate': 0.001, 'hidden': [64, '010']}
    >>> load_yaml("&a [*a]", where="a.yaml")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.yaml is not valid YAML: settings have no aliases.
    """
    if len(text) > MOST_CHARACTERS:
        raise UserError(f"{where} is longer than {MOST_CHARACTERS:,} characters.")
    try:
        return yaml.load(text, _Loader)  # a safe loader
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:  # a number that is too long
        why = getattr(error, "problem", None) or first_line(error)
        raise UserError(f"{where} is not valid YAML: {why}.") from None


def dump_yaml(value: Any) -> str:
    """Return a value as a document that ``load_yaml`` reads as the same value.

    >>> dump_yaml({"label": "1e3", "rate": 1e-05})
    "label: '1e3'\\nrate: 1.0e-05\\n"
    """
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False)
    return text


def distrusted(file: Path, changes: Iterable[tuple[str, Any]] = (), *, trust: bool = False) -> Distrust | None:
    """Return the distrust of a file's values, but for what the user typed as changes; None if the file is trusted.

    >>> distrusted(Path("a.yaml"), [("encoder", "mine:Net"), ("training.epochs", 3)]).typed
    frozenset({'mine:Net'})
    """
    if trust:
        return None
    return Distrust(file, frozenset(text for _, value in changes for text in _texts(value)))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration file as nested values."""
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8") as stream:
            values = load_yaml(stream.read(MOST_CHARACTERS + 1), where=str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not valid YAML: it is no text.") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a configuration: it must hold sections such as training and method.")
    return values


def read_settings(config: Path | None, changes: Iterable[tuple[str, Any]] = (), *, trust: bool = False) -> Settings:
    """Return the settings of a configuration file, or the defaults, with changes at given paths.

    Args:
        config: a YAML file; the configuration of a run can be used as it is.
        changes: what the user typed, which wins.
        trust: whether to import the parts that the file names by a path.

    >>> read_settings(None, [("training.epochs", 5)]).training.epochs
    5
    """
    changes = list(changes)
    values = {} if config is None else read_yaml(config)
    values.pop("format", None)
    distrust = None if config is None else distrusted(config, changes, trust=trust)
    return parse_settings(override(values, changes), distrust=distrust)


def merge(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values with changes merged into them, section by section. A new name replaces a section.

    >>> merge({"method": {"name": "clae", "weight": 2}, "training": {"epochs": 5}}, {"training": {"seed": 1}})
    {'method': {'name': 'clae', 'weight': 2}, 'training': {'epochs': 5, 'seed': 1}}
    >>> merge({"method": "clae"}, {"method": {"weight": 2}})
    {'method': {'name': 'clae', 'weight': 2}}
    """
    merged = dict(values)
    for key, change in changes.items():
        before = merged.get(key)
        if before is not None and not isinstance(before, Mapping) and isinstance(change, Mapping):
            before = {"name": before}  # a name, or an object that is a part
        mergeable = isinstance(before, Mapping) and isinstance(change, Mapping) and "name" not in change
        merged[key] = merge(before, change) if mergeable and before is not None else change
    return merged


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the path and the value of ``section.key=value``, the value written as in YAML; a section takes braces.

    >>> parse_assignment("training.epochs=5"), parse_assignment("data.drop=Unnamed: 0")
    (('training.epochs', 5), ('data.drop', 'Unnamed: 0'))
    """
    path, equals, value = text.partition("=")
    if not equals or not all(path.strip().split(".")):
        raise UserError(f"--set got {brief(text)}: write section.key=value, for example training.epochs=50.")
    found = load_yaml(value, where=f"--set got {brief(text)}: the value")
    return path.strip(), value if isinstance(found, dict) and "{" not in value else found


def override(values: Mapping[str, Any], changes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return nested values with changes at given paths. Later changes win.

    >>> override({"method": "clae"}, [("method.weight", 2), ("training.epochs", 5)])
    {'method': {'name': 'clae', 'weight': 2}, 'training': {'epochs': 5}}
    """
    changed = dict(values)
    for path, value in changes:
        for key in reversed(path.split(".")):
            value = {key: value}
        changed = merge(changed, value)
    return changed
