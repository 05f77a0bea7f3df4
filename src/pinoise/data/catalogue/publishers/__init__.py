"""Readers of published data sets: from an entry of the catalogue and the paths of its files to a ``Dataset``.

How files are found, downloaded and verified belongs in ``pinoise.data.catalogue.fetch``; general formats that users
bring belong in ``pinoise.data.formats``.
"""
