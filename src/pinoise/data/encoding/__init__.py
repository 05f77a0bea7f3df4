"""How raw tables and arrays become features and class numbers: learned from training data, applied to later data.

Reading belongs in ``pinoise.data.formats``; standardisation in ``pinoise.data.standardizer``.
"""
