"""Data sets that can be had by name: what is known of each, where its files come from, and how they are read.

Formats that users bring belong in ``pinoise.data.formats``. Importing this reads no data and no heavy library.
"""

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.catalogue.registry import DEFAULT, entries, entry, load, locate

__all__ = ["DEFAULT", "DataFile", "Entry", "entries", "entry", "load", "locate"]
