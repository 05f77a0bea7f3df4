"""The sdist and the wheel that is built from it hold everything, and run in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, without the variables that lead to this checkout."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "PINOISE_DATA")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and a wheel that was built from the sdist alone."""
    pytest.importorskip("hatchling", reason="needs hatchling: pip install '.[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "--directory", folder, "--target")
    run(*build, "sdist", cwd=ROOT)
    with tarfile.open(folder / f"pinoise-{VERSION}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    run(*build, "wheel", cwd=folder / f"pinoise-{VERSION}")
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The Python of a new environment with the wheel; other packages are those of this one, not downloaded again."""
    folder = wheel.parent / "environment"
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    scheme = {"base": str(folder), "platbase": str(folder)}
    site, scripts = (Path(sysconfig.get_path(name, "venv", scheme)) for name in ("purelib", "scripts"))
    # A folder that a .pth file names is searched, but .pth files in it, such as that of this checkout, are not read.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    executable = scripts / Path(sys.executable).name
    run(sys.executable, "-m", "pip", "--python", executable, "install", "--no-index", "--no-deps", wheel, cwd=folder)
    return executable


@pytest.mark.processes
def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "src" / "pinoise"
    files = {path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}
    assert {"pinoise/py.typed", "pinoise/experiments/recipes.toml"} <= wanted
    assert any(name.endswith(".jinja") for name in wanted)
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not name.startswith(f"pinoise-{VERSION}.dist-info/")}
        metadata = archive.read(f"pinoise-{VERSION}.dist-info/METADATA").decode()
    assert held == wanted
    for extra in PROJECT["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in metadata


@pytest.mark.processes
def test_the_sdist_holds_what_the_tests_and_the_site_need(built: Path) -> None:
    folder = built / f"pinoise-{VERSION}"
    for name in ("tests", "benchmarks", "examples", "docs", "mkdocs.yml", "Makefile", "CITATION.cff", "LICENSE"):
        assert (folder / name).exists(), name


@pytest.mark.processes
def test_the_installed_library_is_imported_and_the_command_runs(python: Path, tmp_path: Path) -> None:
    where = "from pinoise import PiNDA; import pinoise; print(pinoise.__version__, pinoise.__file__)"
    version, file = run(python, "-c", where, cwd=tmp_path).split(maxsplit=1)
    assert version == VERSION
    assert Path(file.strip()).is_relative_to(python.parents[1])

    command = python.with_name("pinoise")
    assert run(command, "--version", cwd=tmp_path).strip() == VERSION
    small = ("--epochs", "1", "--set", "encoder.hidden=8", "--set", "training.information_draws=0")
    run(command, "train", "--data", "wine", "--out", "run", *small, cwd=tmp_path)
    run(command, "report", "run", cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").is_file()  # its template is in the wheel
    assert "PiNDA is" in run(command, "demo", "--seeds", "1", cwd=tmp_path)  # its verdict


def test_the_citation_and_the_changelog_have_the_version_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == VERSION
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
