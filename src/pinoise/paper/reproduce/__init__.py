"""The paper's tables and figures: data in ``items``, and one way to run them. The page about them is in ``report``."""
