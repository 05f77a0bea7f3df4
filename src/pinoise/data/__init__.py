"""From what a user names or holds to standardised batches: readers, the catalogue, splits and standardisation.

Networks, views and training do not belong here, and only ``pinoise.data.rows`` imports torch. The folders follow the
way of the data: ``formats`` reads bytes, ``preparation`` learns how they become features, ``catalogue`` knows published
sets; ``source``, ``readers`` and ``memory`` are the ways in.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pinoise.data.catalogue import entries, load
    from pinoise.data.dataset import Dataset, Labels, Part, Samples
    from pinoise.data.memory import from_arrays, from_arrays_prepared
    from pinoise.data.preparation import Preparation, preparation_from_json
    from pinoise.data.readers import read_file, read_prepared
    from pinoise.data.rows import Rows, make_rows
    from pinoise.data.source import open_for_training, open_source
    from pinoise.data.splitting import split
    from pinoise.data.standardizer import Standardizer

__all__ = [
    "Dataset",
    "Labels",
    "Part",
    "Preparation",
    "Rows",
    "Samples",
    "Standardizer",
    "entries",
    "from_arrays",
    "from_arrays_prepared",
    "load",
    "make_rows",
    "open_for_training",
    "open_source",
    "preparation_from_json",
    "read_file",
    "read_prepared",
    "split",
]

_HOMES = {
    "catalogue": ("entries", "load"),
    "dataset": ("Dataset", "Labels", "Part", "Samples"),
    "memory": ("from_arrays", "from_arrays_prepared"),
    "preparation": ("Preparation", "preparation_from_json"),
    "readers": ("read_file", "read_prepared"),
    "rows": ("Rows", "make_rows"),
    "source": ("open_for_training", "open_source"),
    "splitting": ("split",),
    "standardizer": ("Standardizer",),
}


def __getattr__(name: str) -> object:
    """Import torch, scikit-learn and Arrow only when a name that needs them is asked for."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
