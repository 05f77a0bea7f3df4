"""The modules of the package import each other in one direction only, inside functions too."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import pinoise

ROOT = Path(pinoise.__file__).parent


def test_there_is_no_cycle_of_imports() -> None:
    graph = grimp.build_graph("pinoise", exclude_type_checking_imports=True, cache_dir=None)
    assert len(graph.modules) > 100
    sorter = TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_no_function_of_the_data_imports_the_package() -> None:
    for path in (ROOT / "data").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                found = [
                    ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)
                ]
                assert not [line for line in found if "pinoise" in line], f"{path}, {function.name}"


def loaded_by(code: str) -> set[str]:
    """Return the modules that a new process has loaded after some code."""
    code = f"import sys; {code}; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(printed.split())


HEAVY = {"torch", "sklearn", "pyarrow", "scipy"}
LATER = {
    *("torch._dynamo", "torch._inductor", "tensorboard", "kornia", "onnx", "onnxruntime"),
    *("sklearn.metrics", "sklearn.linear_model", "sklearn.ensemble", "sklearn.neighbors", "sklearn.preprocessing"),
    *("sklearn.decomposition", "sklearn.model_selection", "sklearn.datasets", "sklearn.semi_supervised", "sklearn.svm"),
    *("matplotlib", "jinja2", "rich", "typer", "pooch", "umap", "pinoise.report", "pinoise.experiments"),
}
"""What is needed only by some work, and takes long to import."""


LISTED = "call(app, ['reproduce', '--list', '--json'])"
DOORS = ", ".join(name for name in pinoise.__all__ if not name.startswith("__"))
ABSENT: dict[str, set[str]] = {
    f"from pinoise import {DOORS}": {"lightning_fabric"},
    "import pinoise.choices": {"torch", "numpy"},
    "import pinoise.cli.app": {*HEAVY, "pandas", "numpy", "lightning_fabric", "matplotlib", "jinja2", "pinoise.report"},
    f"from pinoise.cli.app import app; from pinoise.cli.options import call; {LISTED}": {"torch"},
    "import pinoise.data": HEAVY,
    "from pinoise.data import Dataset, Standardizer, split": HEAVY - {"scipy"},
    "from pinoise.data import from_arrays, open_source, read_file": {"torch", "sklearn"},
    "from pinoise.data import from_arrays; import numpy; from_arrays(numpy.eye(4))": {"torch"},
    "import pinoise.paper.catalogue as c, pinoise.data.images.reading; c.entries()": {
        *HEAVY,
        "pooch",
        "requests",
        "PIL",
    }
    - {"scipy"},
    "import pinoise.export; from pinoise import PiNDA": {"onnx", "onnxruntime", "onnxscript"},
}
"""What some code does not import."""


@pytest.mark.processes
@pytest.mark.parametrize("code", ABSENT)
def test_heavy_libraries_wait_until_they_are_needed(code: str) -> None:
    assert not loaded_by(code) & ABSENT[code]


@pytest.fixture(scope="module")
def theirs() -> set[str]:
    """What scikit-learn and torch import by themselves."""
    return loaded_by("import torch, torch.nn, sklearn.base, sklearn.utils.validation")


@pytest.mark.processes
@pytest.mark.parametrize("door", ["PiNDA", "PiNDAClassifier", "PiNoise", "load_run"])
def test_a_door_imports_only_what_it_needs_at_once(door: str, theirs: set[str]) -> None:
    loaded = loaded_by(f"from pinoise import {door}")
    assert "torch" in loaded
    assert loaded & LATER <= theirs
    assert not loaded & {"torch._dynamo", "sklearn.linear_model", "matplotlib"}


@pytest.mark.processes
def test_the_help_imports_neither_torch_nor_data() -> None:
    code = "import pinoise.cli.command, contextlib, io; sys.argv = ['pinoise', 'train', '--help']"
    with_help = f"{code}; s = io.StringIO(); c = contextlib.redirect_stdout(s); c.__enter__(); "
    loaded = loaded_by(f"{with_help}pinoise.cli.command.main(); c.__exit__(None, None, None)")
    assert "rich" in loaded
    assert not loaded & {"torch", "sklearn", "scipy", "numpy", "pandas", "pyarrow"}
