"""Data sets that can be loaded by name: what is known of each, where its files come from, and how they are read.

Importing this reads no data and no heavy library; ``pinoise.data.load`` loads a set.
"""

from pinoise.paper.catalogue.facts import Entry, entries, entry, is_name, locate
from pinoise.paper.catalogue.fetch import DataFile
