"""The reference: every public name of the library, from its docstring, and every verb of the command, from its help."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from pinoise.cli.app import app

PACKAGE = Path(__file__).parents[2] / "src" / "pinoise"

REFERENCE = {
    "pinoise": ("pinoise",),
    "noise": ("pinoise.noise",),
    "views": ("pinoise.views",),
    "methods": ("pinoise.methods",),
    "networks": ("pinoise.networks",),
    "objectives": ("pinoise.training.objectives",),
    "information": ("pinoise.information",),
    "data": ("pinoise.data",),
    "evaluation": ("pinoise.evaluation",),
    "runs": (
        "pinoise.model",
        "pinoise.training.callbacks",
        "pinoise.experiments.compare",
        "pinoise.experiments.results",
    ),
    "export": ("pinoise.export",),
    "report": ("pinoise.report",),
    "choices": ("pinoise.choices",),
}
"""The modules of every page of the reference."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    made = {name: reference_page(name, modules) for name, modules in REFERENCE.items()}
    for name, text in {**made, "index": index_page(), "command": command_page()}.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def reference_page(name: str, modules: tuple[str, ...]) -> str:
    """Return the reference of some modules: what each is, and every public name."""
    several = len(modules) > 1
    parts = [f"# {name.capitalize() if several else modules[0]}\n"]
    for module in modules:
        parts.append(f"\n## {module}\n" if several else "")
        parts.append(f"\n{ast.get_docstring(parsed(module)) or ''}\n")
        for public in described(module):
            options = [f"heading_level: {3 if several else 2}", "inherited_members: true"]
            parts.append("\n      ".join([f"\n::: {module}.{public}\n    options:", *options]) + "\n")
    return "".join(parts)


def index_page() -> str:
    """Return a page that lists every public name."""
    lines = ["# Reference", "", "Every public name. [The command](command.md) has its own page.", ""]
    lines += ["| module | names |", "|---|---|"]
    for page, modules in REFERENCE.items():
        for module in modules:
            names = ", ".join(f"[`{name}`]({page}.md#{module}.{name})" for name in described(module))
            lines.append(f"| <code>{module.replace('.', '.<wbr>')}</code> | {names} |")  # a line ends at a dot
    return "\n".join(lines) + "\n"


def described(module: str) -> list[str]:
    """Return the public names of a module but for those that stand on the first page already."""
    first = set() if module == "pinoise" else set(public_names("pinoise"))
    return [name for name in public_names(module) if name not in first]


def public_names(module: str) -> list[str]:
    """Return the names that a package imports for others, or that a module defines for them.

    >>> public_names("pinoise.information")[:2]
    ['conditional_entropy', 'gaussian_entropy']
    """
    tree = parsed(module)
    if PACKAGE.joinpath(*module.split(".")[1:]).is_dir():
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = [name.name for node in imports if (node.module or "").startswith("pinoise.") for name in node.names]
        return sorted(names, key=lambda name: name.endswith(("Error", "Warning")))  # what goes wrong comes last
    defined = (node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return [name for name in defined if not name.startswith("_")]


def parsed(module: str) -> ast.Module:
    """Return the text of a module as a tree."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))


def command_page() -> str:
    """Return the help of every verb."""
    command: Any = typer.main.get_command(app)
    parts = [f"# The command\n\n{command.help}\n"]
    for name, verb in command.commands.items():
        parts.append(f"\n## pinoise {name}\n\n{verb.help}\n\n| | |\n|---|---|\n")
        for parameter in verb.params:
            names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
            said = " ".join((parameter.help or "").split()).replace("|", r"\|")
            parts.append(f"| {names} | {said} |\n")
    return "".join(parts)
