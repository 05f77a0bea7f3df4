"""Write benchmarks/results/README.md from the result files beside it, so that no figure is copied by hand.

python benchmarks/render.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pinoise.experiments import RECIPES, SCORES, Cell, summarise, verdict

RESULTS = Path(__file__).parent / "results"
HEAD = """# Results

Every table is made by `python benchmarks/render.py` from the JSON files in this folder, and each of those was printed
by the command above its table. Accuracy in percent, mean ± standard deviation over seeds; few-label is logistic
regression on 10 labels per class, over 10 draws. The last epoch is reported. No label was used in training and no
setting was chosen on a test set: σ = 1 for random noise and the other methods' defaults were fixed beforehand, and the
strength of CLAE was chosen on a validation part of the training rows of digits (`python benchmarks/clae_strength.py`,
`clae_strength.json`).
"""


def describe(environment: dict[str, Any]) -> str:
    """One line on where and when figures were measured."""
    packages = environment["packages"]
    return (
        f"{environment['cpu_count']} cores ({environment['cpu']}), {environment['memory_gb']:.0f} GB, "
        f"torch {packages['torch']}, scikit-learn {packages['scikit-learn']}, {environment['date'][:10]}."
    )


def comparison(path: Path) -> str:
    """The table of one ``pinoise compare --json``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    cells = [Cell(**{**row, "flags": tuple(row["flags"])}) for row in result["rows"]]
    methods = list(dict.fromkeys(cell.method for cell in cells))
    seeds = sorted({cell.seed for cell in cells})
    epochs = result["settings"]["training"]["epochs"]
    lines = [
        f"## {cells[0].data}\n",
        f"`pinoise compare --data {cells[0].data} --methods {' '.join(methods)} --seeds {len(seeds)} --epochs {epochs} "
        f"--json > {path.name}`\n",
        f"Seeds {', '.join(map(str, seeds))}; {describe(result['environment'])}\n",
        "| | kNN | SR | LR | few-label | fit (s) | noise |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in summarise(cells):
        figures = " | ".join(f"{line.means[key]:.1f} ± {line.stds[key]:.1f}" for key in SCORES)
        title = RECIPES[line.method].title
        lines.append(f"| {title} | {figures} | {line.seconds:.0f} | {', '.join(line.flags)} |")
    return "\n".join([*lines, "", verdict(summarise(cells)), ""])


def cost(path: Path) -> str:
    """The table of ``step_cost.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## The cost of a step\n",
        f"`python benchmarks/step_cost.py`; {describe(result['environment'])}\n",
        "A step gathers a batch, makes both views, runs forward and backward, and updates all weights. Its rate is set "
        "against that of the matrix products of a random-noise step alone, timed in the same process in turns.\n",
        "| features | batch | noise | ms | GFLOP | of the product rate | × random noise |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["results"]:
        values = [row[key] for key in ("features", "batch", "variant", "milliseconds", "gflop")]
        values += [row["fraction_of_product_rate"], row["ratio_to_random_noise"]]
        lines.append(f"| {' | '.join(map(str, values))} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parts = [HEAD, *(comparison(path) for path in sorted(RESULTS.glob("compare_*.json")))]
    if (RESULTS / "step_cost.json").exists():
        parts.append(cost(RESULTS / "step_cost.json"))
    (RESULTS / "README.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
