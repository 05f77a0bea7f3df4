"""Comparisons as data and one runner: recipes, the table of their scores, and what it means."""

from pinoise.experiments.compare import SCORES, Cell, Line, compare, score_run, summarise
from pinoise.experiments.recipes import DEFAULT_METHODS, RECIPES, Recipe, choose_methods
from pinoise.experiments.verdict import verdict

__all__ = [
    "DEFAULT_METHODS",
    "RECIPES",
    "SCORES",
    "Cell",
    "Line",
    "Recipe",
    "choose_methods",
    "compare",
    "score_run",
    "summarise",
    "verdict",
]
