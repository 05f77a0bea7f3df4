"""The seconds until a command answers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from speed.timing import in_turns, milliseconds, ratio

TURNS = 2
COMMANDS = {
    "python": ["-c", "pass"],
    "import torch": ["-c", "import torch"],
    "import pinoise": ["-c", "import pinoise"],
    "pinoise --help": ["-m", "pinoise", "--help"],
    "from pinoise import PiNDA": ["-c", "from pinoise import PiNDA"],
}


def run(arguments: list[str]) -> Callable[[], object]:
    """Return a function that runs Python with arguments."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def measure() -> dict[str, Any]:
    """Return how long the doors take to open, against importing torch."""
    times = in_turns({name: run(each) for name, each in COMMANDS.items()}, turns=TURNS, clock=time.perf_counter)
    names = ("pinoise --help", "from pinoise import PiNDA")
    ratios = {f"{name} / import torch": ratio(times, name, "import torch") for name in names}
    return {"ratios": ratios, "milliseconds": milliseconds(times)}
