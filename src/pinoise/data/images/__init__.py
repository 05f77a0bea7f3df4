"""Folders of image files: which files they are, how they are decoded, and the array that they stand for.

Sets that are published in files of their own kind belong in ``pinoise.data.formats``. Pillow is imported when the
first image is decoded.
"""
