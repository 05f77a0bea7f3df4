"""YAML as settings use it: plain values of a bounded size, numbers as people write them, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MOST_CHARACTERS = 1_000_000
MOST_VALUES = 100_000  # with every alias written out
DEEPEST = 32

_BASE = "tag:yaml.org,2002:"
# YAML 1.1, which PyYAML follows, reads 1e-3 as text, 010 as 8, 1:30 as 90 and 2024-01-01 as a date.
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z|0x[0-9a-fA-F]+\Z")
_DECIMAL = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+[eE][-+]?[0-9]+\Z|[-+]?\.(inf|Inf|INF)\Z"
    r"|\.(nan|NaN|NAN)\Z"
)


class DocumentError(ValueError):
    """Text that is not a document. The message says what was found, and follows a name and "is" or "has"."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2's numbers, without dates, and with a limit on nesting."""

    _depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose a node, but for one that is nested too deeply."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise DocumentError(f"nested more than {DEEPEST} levels deep")
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper. It also quotes text that the loader would read as a number."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag.removeprefix(_BASE) in ("bool", "null", "merge")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix(_BASE) in ("null", "bool", "int", "float", "str", "seq", "map")
}
_Loader.add_implicit_resolver(f"{_BASE}int", _WHOLE, list("-+0123456789"))
for _each in (_Loader, _Dumper):
    _each.add_implicit_resolver(f"{_BASE}float", _DECIMAL, list("-+0123456789."))


def load_yaml(text: str) -> Any:
    """Return the value of a YAML document: nested lists and mappings of text, numbers, true, false and null.

    The work is bounded: a document has at most a million characters and 100,000 values, counted with every alias
    written out, so that aliases of aliases cannot fill the memory.

    >>> load_yaml("{rate: 1e-3, hidden: [64, 010]}")
    {'rate': 0.001, 'hidden': [64, '010']}
    >>> load_yaml("&a [*a]")
    Traceback (most recent call last):
    ...
    pinoise.training.config.documents.DocumentError: nested more than 32 levels deep
    """
    if len(text) > MOST_CHARACTERS:
        raise DocumentError(f"longer than {MOST_CHARACTERS:,} characters")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, 0, 0)
        return loader.construct_document(node)
    except DocumentError:
        raise
    except yaml.YAMLError:
        raise DocumentError("not valid YAML") from None
    except (ValueError, LookupError):  # a number of thousands of digits; a tag that its value does not fit
        raise DocumentError("not valid YAML: it has a number that is too long, or a tag that does not fit") from None


def dump_yaml(value: Any) -> str:
    """Return a value as a document that ``load_yaml`` reads as the same value.

    >>> dump_yaml({"label": "1e3", "rate": 1e-05})
    "label: '1e3'\\nrate: 1.0e-05\\n"
    """
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False)
    return text


def _check(node: Node, seen: int, depth: int) -> int:
    """Return the number of values up to and in a node. Refuse too many, too deep ones, and a key that stands twice."""
    if depth >= DEEPEST:
        raise DocumentError(f"nested more than {DEEPEST} levels deep")
    seen += 1
    if seen > MOST_VALUES:
        raise DocumentError(f"a document of more than {MOST_VALUES:,} values")
    if isinstance(node, SequenceNode):
        for inner in node.value:
            seen = _check(inner, seen, depth + 1)
    elif isinstance(node, MappingNode):
        keys: set[str] = set()
        for key, inner in node.value:
            if not isinstance(key, ScalarNode):
                raise DocumentError("not valid YAML: a key must be a word")
            if key.value in keys:
                raise DocumentError(f"ambiguous: it gives {key.value[:80]!r} twice")
            keys.add(key.value)
            seen = _check(inner, seen, depth + 1)
    return seen
