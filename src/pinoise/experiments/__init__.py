"""Comparisons as data and one runner: recipes, the table of their scores, and what it means."""

from pinoise.experiments.compare import SCORES, Cell, Line, Plans, compare, plan, score_run, summarise
from pinoise.experiments.recipes import DEFAULT_METHODS, RECIPES, Recipe, choose_methods
from pinoise.experiments.sources import check_scorable, open_compared, open_scored
from pinoise.experiments.verdict import distance, verdict

__all__ = [
    "DEFAULT_METHODS",
    "RECIPES",
    "SCORES",
    "Cell",
    "Line",
    "Plans",
    "Recipe",
    "check_scorable",
    "choose_methods",
    "compare",
    "distance",
    "open_compared",
    "open_scored",
    "plan",
    "score_run",
    "summarise",
    "verdict",
]
