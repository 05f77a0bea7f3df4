"""The modules of the package import each other in one direction only, inside functions too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pinoise

ROOT = Path(pinoise.__file__).parent
CHECKED = "pinoise"


def module_name(path: Path) -> str:
    parts = ("pinoise", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    return {module_name(path): path for path in ROOT.rglob("*.py")}


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield every import of a module, those inside functions included and those for type checkers left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from statements(child)


def imported(path: Path, known: set[str]) -> set[str]:
    """Return the modules of the package that a file imports; of ``from a import b`` that is ``a.b`` if it is one."""
    found: set[str] = set()
    for statement in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif statement.module is not None:
            assert statement.level == 0, f"{path} imports relatively"
            inner = {f"{statement.module}.{alias.name}" for alias in statement.names}
            found |= {name if name in known else statement.module for name in inner}
    return found & known


def graph(under: str) -> dict[str, set[str]]:
    known = modules()
    chosen = {name for name in known if name == under or name.startswith(f"{under}.")}
    return {name: imported(known[name], set(known)) & chosen for name in chosen}


def test_there_is_no_cycle_of_imports() -> None:
    try:
        TopologicalSorter(graph(CHECKED)).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_cycle_through_a_function_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    from pinoise.data import rows\n    import pinoise.files\n")
    (tmp_path / "b.py").write_text("if TYPE_CHECKING:\n    import pinoise.data.rows\n")
    known = {"pinoise.data", "pinoise.data.rows", "pinoise.files"}
    assert imported(tmp_path / "a.py", known) == {"pinoise.data.rows", "pinoise.files"}
    assert imported(tmp_path / "b.py", known) == set()


def test_no_function_of_the_data_imports_the_package() -> None:
    for name, path in modules().items():
        if name.startswith("pinoise.data"):
            for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef):
                    assert not imported_inside(function), f"{name}.{function.name} imports {imported_inside(function)}"


def imported_inside(function: ast.FunctionDef) -> list[str]:
    return [ast.unparse(found) for found in statements(function) if "pinoise" in ast.unparse(found)]


def loaded_by(code: str) -> set[str]:
    """Return the modules that a new process has loaded after some code."""
    code = f"import sys; {code}; print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(printed.split())


@pytest.mark.processes
def test_the_doors_do_not_import_lightning_until_training_starts() -> None:
    loaded = loaded_by(
        f"from pinoise import {', '.join(name for name in pinoise.__all__ if not name.startswith('__'))}"
    )
    assert "torch" in loaded
    assert "lightning_fabric" not in loaded


LATER = {
    *("torch._dynamo", "torch._inductor", "lightning_fabric", "tensorboard", "kornia", "onnx", "onnxruntime"),
    *("sklearn.metrics", "sklearn.linear_model", "sklearn.ensemble", "sklearn.neighbors", "sklearn.preprocessing"),
    *("sklearn.decomposition", "sklearn.model_selection", "sklearn.datasets", "sklearn.semi_supervised", "sklearn.svm"),
    *("matplotlib", "jinja2", "rich", "typer", "pooch", "umap", "pinoise.report", "pinoise.experiments"),
}
"""What is needed only by some work, and takes long to import."""


@pytest.mark.processes
@pytest.mark.parametrize("door", ["PiNDA", "PiNDAClassifier", "PiNoise", "load_run"])
def test_a_door_imports_only_what_it_needs_at_once(door: str) -> None:
    loaded = loaded_by(f"from pinoise import {door}")
    assert "torch" in loaded
    # What scikit-learn and torch import by themselves is theirs.
    theirs = loaded_by("import torch, torch.nn, sklearn.base, sklearn.utils.validation")
    assert loaded & LATER <= theirs
    assert not loaded & {"torch._dynamo", "lightning_fabric", "sklearn.linear_model", "matplotlib"}


@pytest.mark.processes
def test_the_help_imports_neither_torch_nor_data() -> None:
    code = "import pinoise.cli.command, contextlib, io; sys.argv = ['pinoise', 'train', '--help']"
    with_help = f"{code}; s = io.StringIO(); c = contextlib.redirect_stdout(s); c.__enter__(); "
    loaded = loaded_by(f"{with_help}pinoise.cli.command.main(); c.__exit__(None, None, None)")
    assert "rich" in loaded
    assert not loaded & {"torch", "sklearn", "scipy", "numpy", "pandas", "pyarrow", "lightning_fabric"}
