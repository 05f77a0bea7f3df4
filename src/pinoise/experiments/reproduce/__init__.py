"""The paper's tables and figures, as data in ``items`` and one way to run them; the pages about them are in ``report``."""
