"""Readers of published data sets, one file per publisher, each with the facts about its sets beside the reader.

A reader takes the paths of a set's files and returns a ``Dataset``. How files are found, downloaded and verified
belongs in ``pinoise.data.catalogue.fetch``; general formats that users bring belong in ``pinoise.data.formats``.
"""
