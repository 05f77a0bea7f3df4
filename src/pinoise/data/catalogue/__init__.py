"""Data sets that can be loaded by name: what is known of each, where its files come from, and how they are read.

Formats that users bring belong in ``pinoise.data.formats``. Importing this reads no data and no heavy library;
``pinoise.data.load`` loads a set.
"""

from pinoise.data.catalogue.facts import Entry, availability, entries, entry, is_name, locate
from pinoise.data.catalogue.fetch import DataFile
