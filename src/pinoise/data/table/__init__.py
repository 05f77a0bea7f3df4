"""Tables with named columns: a repeatable stream of Arrow batches, and the encoding that turns them into features.

``batches`` and ``header`` read files and frames, ``kinds`` says what each column is, the files of the kinds learn,
encode and decode it, and ``encoding`` maps whole tables. Arrays and images belong beside this folder.
"""
