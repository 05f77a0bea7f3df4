"""From what a user names or holds to standardised batches: readers, the catalogue, splits and standardisation.

Networks, views and training do not belong here, and only ``pinoise.data.rows`` imports torch. The folders follow the
way of the data: ``formats`` and ``images`` read bytes, ``encoding`` turns raw values into features, ``catalogue`` knows
published sets, ``preparation`` remembers how training data was read; ``readers`` has the ways in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pinoise.data.catalogue import entries, is_name
    from pinoise.data.catalogue.loading import load
    from pinoise.data.dataset import Dataset, Labels, Part, Samples, fingerprint_parts
    from pinoise.data.formats.memory import InMemory, is_table
    from pinoise.data.options import ReadOptions
    from pinoise.data.preparation import Preparation, preparation_from_json
    from pinoise.data.readers import from_arrays, open_for_training, open_source, read_file
    from pinoise.data.rows import Rows, make_rows
    from pinoise.data.splitting import split
    from pinoise.data.standardizer import Standardizer

__all__ = [
    "Dataset",
    "InMemory",
    "Labels",
    "Part",
    "Preparation",
    "ReadOptions",
    "Rows",
    "Samples",
    "Standardizer",
    "entries",
    "fingerprint_parts",
    "from_arrays",
    "is_name",
    "is_table",
    "load",
    "make_rows",
    "open_for_training",
    "open_source",
    "preparation_from_json",
    "read_file",
    "split",
]

_HOMES = {
    "catalogue": ("entries", "is_name"),
    "catalogue.loading": ("load",),
    "dataset": ("Dataset", "Labels", "Part", "Samples", "fingerprint_parts"),
    "formats.memory": ("InMemory", "is_table"),
    "options": ("ReadOptions",),
    "preparation": ("Preparation", "preparation_from_json"),
    "readers": ("from_arrays", "open_for_training", "open_source", "read_file"),
    "rows": ("Rows", "make_rows"),
    "splitting": ("split",),
    "standardizer": ("Standardizer",),
}


def __getattr__(name: str) -> object:
    """Import torch, scikit-learn and Arrow only when a name that needs them is asked for."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
