"""From the bytes of a file, or an object in memory, to arrays or Arrow tables as they stand there.

What is learned from them, such as categories, fill values and class numbers, belongs in ``table`` and ``arrays``.
"""
