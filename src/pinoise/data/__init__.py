"""From what a user names or holds to standardised batches: readers, data sets by name, splits and standardisation.

Networks, views and training do not belong here, and only ``pinoise.data.rows`` imports torch. ``table`` has tables,
``formats`` and ``images`` read other bytes, ``source`` finds what is named, ``disk`` keeps what is made once,
``preparation`` remembers how training data was read, and ``readers`` has the ways in.
"""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pinoise.data.dataset import Dataset, Labels, Part, Samples, Targets, fingerprint_parts, split
    from pinoise.data.formats.memory import InMemory, is_table
    from pinoise.data.options import LaterOptions, ReadOptions
    from pinoise.data.preparation import Preparation, preparation_from_json
    from pinoise.data.readers import from_arrays, open_for_training, open_source, read_file
    from pinoise.data.rows import Rows, make_rows
    from pinoise.data.source import entries, is_name, load, locate
    from pinoise.data.standardizer import Standardizer

_HOMES = {
    "dataset": ("Dataset", "Labels", "Part", "Samples", "Targets", "fingerprint_parts", "split"),
    "formats.memory": ("InMemory", "is_table"),
    "options": ("LaterOptions", "ReadOptions"),
    "preparation": ("Preparation", "preparation_from_json"),
    "readers": ("from_arrays", "open_for_training", "open_source", "read_file"),
    "rows": ("Rows", "make_rows"),
    "source": ("entries", "is_name", "load", "locate"),
    "standardizer": ("Standardizer",),
}
__all__ = [*chain(*_HOMES.values())]


def __getattr__(name: str) -> object:
    """Import torch, scikit-learn and Arrow only when a name that needs them is used."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
