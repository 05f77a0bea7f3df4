"""What a measurement ran on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any


def describe(environment: dict[str, Any]) -> str:
    """Return one line about the machine and the date of a measurement."""
    packages = environment["packages"]
    return (
        f"{environment['cpu_count']} cores ({environment['cpu']}), {environment['memory_gb']:.0f} GB, "
        f"torch {packages['torch']}, scikit-learn {packages['scikit-learn']}, {environment['date'][:10]}."
    )


def commit() -> str:
    """Return the commit that is measured, with a mark if files have changed since."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(asked, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
