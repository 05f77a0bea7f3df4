"""Comparisons as data and one runner: recipes, the table of their scores, and what it means."""
