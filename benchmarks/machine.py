"""What a measurement ran on, in one line."""

from __future__ import annotations

from typing import Any


def describe(environment: dict[str, Any]) -> str:
    """Return one line about the machine and the date of a measurement."""
    packages = environment["packages"]
    return (
        f"{environment['cpu_count']} cores ({environment['cpu']}), {environment['memory_gb']:.0f} GB, "
        f"torch {packages['torch']}, scikit-learn {packages['scikit-learn']}, {environment['date'][:10]}."
    )
