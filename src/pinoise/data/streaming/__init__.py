"""Tables larger than memory: converted once, piece by piece, into a file of rows that batches are read from.

How the pieces of each format are read belongs in ``pinoise.data.formats``, what is learned from them in
``pinoise.data.encoding``.
"""
