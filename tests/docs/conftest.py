"""The built site, and a browser to look at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built without running the tutorials; a broken link or anchor fails the build."""
    pytest.importorskip("mkdocs", reason="needs mkdocs: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PINOISE_RUN_TUTORIALS": "false", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def browser() -> str:
    """The command of a browser, or a skip that says that there is none."""
    found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if found is None:
        pytest.skip("needs a browser: chromium is not installed")
    return found
