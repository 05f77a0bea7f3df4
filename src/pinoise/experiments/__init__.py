"""Comparisons as data and one runner: recipes, the table of their scores, and what it means."""

from pinoise.experiments.compare import SCORES, Cell, Line, Plans, check_labelled, compare, plan, score_run, summarise
from pinoise.experiments.recipes import DEFAULT_METHODS, RECIPES, Recipe, choose_methods
from pinoise.experiments.verdict import distance, verdict

__all__ = [
    "DEFAULT_METHODS",
    "RECIPES",
    "SCORES",
    "Cell",
    "Line",
    "Plans",
    "Recipe",
    "check_labelled",
    "choose_methods",
    "compare",
    "distance",
    "plan",
    "score_run",
    "summarise",
    "verdict",
]
