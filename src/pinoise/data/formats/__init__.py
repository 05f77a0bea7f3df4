"""From the bytes of a file to arrays or Arrow tables as they stand in it.

What is learned from them, such as categories, fill values and class numbers, belongs in ``pinoise.data.preparation``.
"""
