"""The paper's own room: its data sets and the formats they are published in, its tables and figures, its costs.

What serves users of any data belongs in the other folders. They reach what is here by the import paths in
``pinoise.choices``; only the verbs ``reproduce`` and ``cost`` import it.
"""
