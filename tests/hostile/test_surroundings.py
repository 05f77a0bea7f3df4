"""What surrounds a process changes no result: variables of other programs, locales, and streams that are closed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import LIMIT

OTHERS = {
    **{"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "x", "PINOISE_CACHE": "", "PINOISE_DATA": "/nowhere"},
    **{"TMPDIR": "/nowhere", "HOME": "/nowhere", "COLUMNS": "-5", "LINES": "x", "TERM": "\x1b[2J", "NO_COLOR": "1"},
    **{"FORCE_COLOR": "1", "CUDA_VISIBLE_DEVICES": "99,x", "OMP_NUM_THREADS": "x", "MPLBACKEND": "nosuch"},
    **{"MPLCONFIGDIR": "/nowhere", "PL_GLOBAL_SEED": "x", "LANG": "xx_YY.ZZ", "LC_ALL": "xx_YY.UTF-8"},
}
SURROUNDINGS: dict[str, tuple[dict[str, str], str]] = {
    "variables of other programs": (OTHERS, ""),
    "no UTF-8": ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}, ""),
    "no assertions": ({"PYTHONOPTIMIZE": "2"}, ""),
    "no input and no errors": ({}, "<&- 2>&-"),
    "a reader that goes away": ({}, "| true"),
}


@pytest.mark.processes
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_an_embedding_does_not_depend_on_what_surrounds_the_process(
    pinoise: Callable[..., Any], here: Path, name: str
) -> None:
    embed = ("embed", "other", "--data", "d.npy", "--out")
    assert pinoise(*embed, "wanted.npy").code == 0
    variables, streams = SURROUNDINGS[name]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-m", "pinoise", *embed, "found.npy"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    np.testing.assert_array_equal(np.load("found.npy"), np.load("wanted.npy"))
