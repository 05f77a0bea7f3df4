"""Comparisons as data and one runner: recipes, the table of their scores, and what it means."""

from pinoise.experiments.cache import CellCache, default_cache_folder
from pinoise.experiments.cells import SCORES, Cell, Line, summarise
from pinoise.experiments.compare import compare
from pinoise.experiments.information import information_of_run
from pinoise.experiments.plans import Plans, plan
from pinoise.experiments.recipes import DEFAULT_METHODS, RECIPES, Recipe, choose_methods
from pinoise.experiments.scoring import score_run
from pinoise.experiments.sources import check_scorable, open_compared, open_scored
from pinoise.experiments.standing import against_best_rival, comparisons, rank_methods, standing_as_dict
from pinoise.experiments.suites import (
    SUITES,
    Suite,
    sample_rows,
    shrink_images,
    suite_sources,
)
from pinoise.experiments.verdict import distance, verdict

__all__ = [
    "DEFAULT_METHODS",
    "RECIPES",
    "SCORES",
    "SUITES",
    "Cell",
    "CellCache",
    "Line",
    "Plans",
    "Recipe",
    "Suite",
    "against_best_rival",
    "check_scorable",
    "choose_methods",
    "compare",
    "comparisons",
    "default_cache_folder",
    "distance",
    "information_of_run",
    "open_compared",
    "open_scored",
    "plan",
    "rank_methods",
    "sample_rows",
    "score_run",
    "shrink_images",
    "standing_as_dict",
    "suite_sources",
    "summarise",
    "verdict",
]
