"""Write results/README.md and the tables in the documents from result files, so that no figure is copied by hand.

python benchmarks/render.py
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from diagrams import critical_difference, rank_diagrams
from few_labels import summaries
from image_noise import chosen
from image_noise import table as tried
from machine import describe
from noise_choice import NOISE_KINDS
from pinoise.cli.console import SCORE_TITLES
from pinoise.experiments.ranking import against_rivals, rank_methods
from pinoise.experiments.recipes import RECIPES
from pinoise.experiments.results import Cell, Line, columns, summarise, verdict
from pinoise.report import to_png
from size_sections import (
    bench,
    bench_lines,
    faults,
    faults_lines,
    hostile,
    hostile_lines,
    memory_lines,
    neighbours,
    neighbours_lines,
)
from speed import tables as speed_tables
from suite import SUITES
from table_sections import mixed_table, neighbour_agreement

RESULTS = Path(__file__).parent / "results"
ROOT = RESULTS.parent.parent
CHOSEN = ("silhouette", "trial")  # the score that chose best, as ``noise_choice.py`` names it
MARKS = ("<!-- table: {name} -->\n", "<!-- end of table -->\n")
HEAD = """# Results

`python benchmarks/render.py` makes every table from the JSON files in this folder. The command above a table made its
file. Accuracy is in percent, mean ± standard deviation over seeds. Few-label is logistic regression on 10 labels per
class, over 10 draws. The last epoch is reported. Training used no labels.

How far to trust the figures:

- Choices are made on validation rows of the training part of half of the sets. A second table gives the ranks on the
  other half, which is looked at once. An older choice, of the temperature and the guards on neighbours, was made after
  looking at test scores (one seed) of digits, hapt561, isolet, wisdm, ecg5000 and reuters46; of these, reuters46 is in
  the second half. `choices.json` below repeats that choice on validation rows.
- The strengths of CLAE, Viewmaker and SimCL were chosen on a validation part of the training rows of digits
  (`python benchmarks/rival_strength.py`, `rival_strength.json`).
- To keep a full refit of the suite `vectors` within hours, its sets are cut to 1,000 training and 1,000 test rows, its
  fits to about 250 steps and layers of 256, and kNN and the few-label probes are its only scores. The fits of
  `vectors_joined.json` are all of one commit and had one thread each. Other fits ran at the same time, so do not
  compare their seconds.
- The fits of `images.json` ran on one core each, beside other work.
"""


def read(path: Path) -> tuple[dict[str, Any], list[Cell]]:
    """Return a result of ``pinoise compare --json`` and its cells."""
    result = json.loads(path.read_text(encoding="utf-8"))
    return result, [Cell.from_dict(row) for row in result["rows"]]


def command(result: dict[str, Any], cells: list[Cell], path: Path) -> str:
    """Return the command that prints a result. It does not depend on cells from the cache."""
    verb = f"python benchmarks/suite.py {result['suite']}" if result["suite"] else "pinoise compare --json"
    source = "" if result["suite"] else "".join(f" --data {name}" for name in _unique(cell.data for cell in cells))
    chosen = _unique(cell.method for cell in cells)
    usual = SUITES[result["suite"]].methods if result["suite"] else []
    needed = [method for method in usual if method in chosen or RECIPES[method].needs is None]
    methods = "" if needed == chosen else f" --methods {','.join(chosen)}"
    seeds = sorted({cell.seed for cell in cells})
    epochs = result["settings"].get("training", {}).get("epochs")
    length = f" --epochs {epochs}" if epochs else "" if result["suite"] else f" --steps {result['steps']}"
    return (
        f"`{verb}{source}{methods} --seeds {len(seeds)} --embedding {result['embedding']}{length} "
        f"> {path.name}`; seeds {', '.join(map(str, seeds))}; {describe(result['environment'])}\n"
    )


def comparison(path: Path) -> str:
    """The tables of a comparison on a few data sets."""
    result, cells = read(path)
    parts = []
    for data in _unique(cell.data for cell in cells):
        here = [cell for cell in cells if cell.data == data]
        shown = columns([line.means for line in summarise(here)])
        lines = [
            f"## {data}, {result['embedding']} embedding\n",
            command(result, cells, path),
            f"| | {' | '.join(SCORE_TITLES[key] for key in shown)} | fit (s) | health |",
            f"|---|{'---|' * len(shown)}---|---|",
        ]
        for line in summarise(here):
            figures = " | ".join(_figure(line, key) for key in shown)
            title = RECIPES[line.method].title
            lines.append(f"| {title} | {figures} | {line.seconds:.0f} | {', '.join(line.flags)} |")
        parts.append("\n".join([*lines, "", verdict(summarise(here)), ""]))
    return "\n".join(parts)


def standing(cells: list[Cell]) -> list[str]:
    """Return mean ranks over all data sets, and our wins and losses against each method."""
    lines = summarise(cells)
    ranks = {score: rank_methods(lines, score) for score in ("few", "knn")}
    found = {score: {item.rival: item for item in against_rivals(lines, score)} for score in ("few", "knn")}
    methods = sorted(_unique(cell.method for cell in cells), key=lambda method: ranks["few"].get(method, 99))
    table = [
        "| | few-label rank | PiNDA won–lost | p | Holm | kNN rank | PiNDA won–lost | p | Holm |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for method in methods:
        row = [RECIPES[method].title]
        for score in ("few", "knn"):
            item = found[score].get(method)
            row.append(f"{ranks[score][method]:.2f}" if method in ranks[score] else "–")
            row += 3 * ["–"] if item is None else [f"{item.wins}–{len(item.losses)}", _p(item.p), _p(item.holm)]
        table.append(f"| {' | '.join(row)} |")
    return table


def by_set(cells: list[Cell], score: str) -> list[str]:
    """One score of every method on every data set; the best of a set is bold."""
    lines = [line for line in summarise(cells) if score in line.means]
    methods = _unique(line.method for line in lines)
    table = [
        f"| {score} | {' | '.join(RECIPES[method].title for method in methods)} |",
        f"|---|{'---|' * len(methods)}",
    ]
    for data in _unique(line.data for line in lines):
        here = {line.method: line for line in lines if line.data == data}
        best = max(line.means[score] for line in here.values())
        row = []
        for method in methods:
            shown = _figure(here[method], score) if method in here else ""
            row.append(f"**{shown}**" if method in here and here[method].means[score] == best else shown)
        table.append(f"| {data} | {' | '.join(row)} |")
    return table


def losses(cells: list[Cell]) -> str:
    """Name the sets on which our method loses."""
    sentences = []
    for score, title in (("few", "With few labels"), ("knn", "In kNN")):
        for item in against_rivals(summarise(cells), score):
            if item.losses and item.rival in ("raw", "fixed", "scarf", "neighbours"):
                rival = RECIPES[item.rival].title
                sentences.append(f"{title} PiNDA is below {rival} on {', '.join(item.losses)}.")
    return " ".join(sentences)


def gains(cells: list[Cell]) -> str:
    """Say how far our method is above raw features, on average and at worst."""
    found = {(line.data, line.method): line.means for line in summarise(cells)}
    sentences = []
    for score, title in (("few", "With few labels"), ("knn", "In kNN")):
        gaps = {data: found[data, "pinda"][score] - found[data, "raw"][score] for data, _ in found}
        worst = min(gaps, key=lambda data: gaps[data])
        mean = fmean(gaps.values())
        sentences.append(
            f"{title} PiNDA is {mean:+.1f} points from raw features on average, at worst {gaps[worst]:+.2f} ({worst})."
        )
    return " ".join(sentences)


def images(path: Path) -> str:
    """The tables of the image suite, and what noise adds to augmentations."""
    result, cells = read(path)
    settings = result["settings"]
    return "\n".join(
        [
            "## Images\n",
            command(result, cells, path),
            f"ResNet18 of width {settings['encoder']['width']}, {SUITES['images'].rows} rows, at least "
            f"{result['steps']} steps of {settings['training']['batch_size']}; `examples/images.yaml` is its "
            "configuration for `pinoise train`.\n",
            *across(cells),
            "",
            *added(cells),
            "",
            comparison(path),
        ]
    )


def across(cells: list[Cell]) -> list[str]:
    """kNN and few-label accuracy of every method, data sets side by side."""
    lines = summarise(cells)
    sets = _unique(line.data for line in lines)
    found = {(line.data, line.method): line for line in lines}
    table = [
        f"| | {' | '.join(f'{data}, {title}' for data in sets for title in ('kNN', 'few-label'))} |",
        f"|---|{'---|' * (2 * len(sets))}",
    ]
    for method in _unique(line.method for line in lines):
        row = [_figure(found[data, method], score) for data in sets for score in ("knn", "few")]
        table.append(f"| {RECIPES[method].title} | {' | '.join(row)} |")
    return table


def added(cells: list[Cell]) -> list[str]:
    """What every kind of noise adds to augmentations alone, seed by seed."""
    scores = {(cell.data, cell.method, cell.seed): cell for cell in cells}
    seeds = sorted({cell.seed for cell in cells})
    sets = _unique(cell.data for cell in cells)
    table = [
        f"| points above augmentations alone | {' | '.join(f'{d}, {t}' for d in sets for t in ('kNN', 'few-label'))} |",
        f"|---|{'---|' * (2 * len(sets))}",
    ]
    for method in _unique(cell.method for cell in cells if cell.method.startswith("aug-")):
        row = []
        for data in sets:
            for score in ("knn", "few"):
                gaps = [
                    100 * (getattr(scores[data, method, seed], score) - getattr(scores[data, "aug", seed], score))
                    for seed in seeds
                ]
                row.append(f"{fmean(gaps):+.1f} ± {pstdev(gaps):.1f}")
        table.append(f"| {RECIPES[method].title} | {' | '.join(row)} |")
    return table


def image_noise(path: Path) -> str:
    """The section on what was tried on images."""
    return "\n".join(["## What was tried on images\n", *image_noise_lines(path), ""])


def image_noise_lines(path: Path) -> list[str]:
    """The tables of ``image_noise.py``: all candidates, and what a score without labels would choose among them."""
    result = json.loads(path.read_text(encoding="utf-8"))
    return [
        f"`python benchmarks/image_noise.py`; {describe(result['environment'])}",
        "",
        *tried(result["rows"]),
        "",
        "kNN points of the candidate that seed 0 picked above other rows, compared seed by seed. "
        "Means over all seeds, and over those that did not pick it:",
        "",
        *image_gaps(result["rows"]),
        "",
        "Choosing by the silhouette of clusters, after a full fit with seed 0:",
        "",
        *chosen(result["rows"]),
    ]


PICKED = "+ the image itself, differences on top, × .5"  # the best kNN on CIFAR-10 with seed 0


def image_gaps(rows: list[dict[str, Any]]) -> list[str]:
    """How far the picked candidate is above every row that has as many seeds."""
    sets = _unique(row["data"] for row in rows)
    knn = {(row["noise"], row["data"], row["seed"]): row["knn"] for row in rows}
    seeds = sorted(seed for noise, data, seed in knn if (noise, data) == (PICKED, sets[0]))
    titles = [f"{data}, {which}" for data in sets for which in (f"{len(seeds)} seeds", "without seed 0")]
    lines = [f"| above | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for noise in _unique(row["noise"] for row in rows if row["noise"] != PICKED):
        if any((noise, data, seed) not in knn for data in sets for seed in seeds):
            continue
        gaps = {(data, seed): knn[PICKED, data, seed] - knn[noise, data, seed] for data in sets for seed in seeds}
        means = [fmean(gaps[data, seed] for seed in some) for data in sets for some in (seeds, seeds[1:])]
        lines.append(f"| {noise} | {' | '.join(f'{mean:+.1f}' for mean in means)} |")
    return lines


def suite(path: Path) -> str:
    """The tables of a suite."""
    result, cells = read(path)
    sets = len({cell.data for cell in cells})
    held_out = [name for name in _unique(cell.data for cell in cells) if name in SUITES[result["suite"]].held_out]
    flagged = sorted({f"{cell.data}: {flag}" for cell in cells if cell.method == "pinda" for flag in cell.flags})
    health = f"PiNDA's health: {', '.join(flagged)}." if flagged else "No run of PiNDA raised a flag."
    return "\n".join(
        [
            f"## {sets} data sets as vectors, {result['embedding']} embedding\n",
            command(result, cells, path),
            *standing(cells),
            "",
            f"p: Wilcoxon over sets, two-sided; Holm: corrected for the number of rows. {gains(cells)} "
            f"{losses(cells)} {health}\n",
            "hapt561 and hapt_raw are the same recordings; pcmac and newsgroups20 are texts of the same kind. On the "
            f"sets that no choice was made on ({', '.join(held_out)}):\n",
            *standing([cell for cell in cells if cell.data in held_out]),
            "",
            *by_set(cells, "few"),
            "",
            *by_set(cells, "knn"),
            "",
        ]
    )


def nuisance(path: Path) -> str:
    """The table of ``nuisance.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## Does noise find what does not matter?\n",
        f"`python benchmarks/nuisance.py`; seeds {', '.join(map(str, result['seeds']))}; "
        f"{describe(result['environment'])}\n",
        "AUC of σ in telling 40 nuisance features from 40 that carry a hidden state; 0.5 is chance.\n",
        "| objective | at the start | learned, mean | learned, worst seed | health |",
        "|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        values = [row[key] for key in ("objective", "start", "auc_mean", "auc_min")]
        lines.append(f"| {' | '.join(map(str, values))} | {', '.join(row['flags'])} |")
    return "\n".join([*lines, ""])


def choices(path: Path) -> str:
    """The table of ``choices.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    data = _unique(row["data"] for row in result["rows"])
    keys = [key for key in result["rows"][0] if key not in ("variant", "data")]
    lines = [
        "## What each choice is worth\n",
        f"`python benchmarks/choices.py`; seeds {', '.join(map(str, result['seeds']))}; "
        f"{describe(result['environment'])}\n",
        f"On validation rows of {', '.join(data)}: few-label accuracy, then kNN accuracy for several shares of the "
        "learned part in the joined embedding. All figures are means over the sets.\n",
        f"| | {' | '.join(keys)} |",
        f"|---|{'---|' * len(keys)}",
    ]
    for variant in _unique(row["variant"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["variant"] == variant]
        means = [f"{sum(row[key] for row in rows) / len(rows):.1f}" for key in keys]
        lines.append(f"| {variant} | {' | '.join(means)} |")
    return "\n".join([*lines, ""])


def noise_choice(path: Path) -> str:
    """The tables of ``noise_choice.py``, with every set."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = ["## Which noise is best, and which score tells\n", *noise_choice_lines(path), ""]
    kinds = list(result["fixed"])
    lines += [f"| few-label | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for data in result["sets"]:
        here = {row["noise"]: row["few"] for row in result["rows"] if row["data"] == data}
        best = max(here.values())
        row = [f"**{here[kind]:.1f}**" if here[kind] == best else f"{here[kind]:.1f}" for kind in kinds]
        lines.append(f"| {data} | {' | '.join(row)} |")
    return "\n".join([*lines, ""])


def noise_choice_lines(path: Path) -> list[str]:
    """How kinds of noise do on average, and what a choice by each score without labels gives."""
    result = json.loads(path.read_text(encoding="utf-8"))
    sets = len(result["sets"])
    lines = [
        f"`python benchmarks/noise_choice.py`; seed {result['seed']}; {describe(result['environment'])}",
        "",
        f"| kind of noise | few-label, mean over {sets} sets | kNN, mean over {sets} sets |",
        "|---|---|---|",
        *(f"| {name} | {mean['few']:.1f} | {mean['knn']:.1f} |" for name, mean in result["fixed"].items()),
        "",
        "| score without labels | after | mean Kendall τ | few-label of its choice | kNN of its choice "
        f"| within a point of the best, of {sets} sets |",
        "|---|---|---|---|---|---|",
    ]
    for found in sorted(result["scores"], key=lambda found: -found["few"]):
        after = {"full": "a full fit", "trial": "a trial"}[found["after"]]
        tau = f"{found['mean tau']:.2f}"
        row = [found["score"], after, tau, f"{found['few']:.1f}", f"{found['knn']:.1f}", str(found["within a point"])]
        lines.append(f"| {' | '.join(row)} |")
    studies = [path, path.with_stem(f"{path.stem}_held_out")]
    return [*lines, *(line for study in studies if study.exists() for line in ("", chosen_line(study)))]


def chosen_line(path: Path) -> str:
    """What a choice by the best score gives beside one kind of noise on all sets."""
    result = json.loads(path.read_text(encoding="utf-8"))
    choice = next(found for found in result["scores"] if (found["score"], found["after"]) == CHOSEN)
    fixed = ", ".join(f"{name} {result['fixed'][name]['few']:.1f}" for name in NOISE_KINDS)
    sets = len(result["sets"])
    where = f"On the {sets} sets that no choice was made on (`--held-out`)" if "held_out" in path.stem else "Here"
    return (
        f"{where}, a choice by {choice['score']} after a trial has a few-label accuracy of {choice['few']:.1f}, "
        f"against {fixed} for one kind on all sets; it is within a point of the best of them on "
        f"{choice['within a point']} of {sets} sets."
    )


def few_labels(path: Path) -> str:
    """The section on ``PiNDAClassifier``, with every set."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = ["## Few labels: PiNDAClassifier and its rivals\n", *few_labels_lines(path), ""]
    for labels, found in summaries(result["sets"])["all"].items():
        methods = list(found["rank"])
        lines += [f"| {labels} labels per class | {' | '.join(methods)} |", f"|---|{'---|' * len(methods)}"]
        for name, one in result["sets"].items():
            if labels not in one["accuracy"]:
                continue
            here = {method: 100 * fmean(one["accuracy"][labels][method]) for method in methods}
            row = [f"**{value:.1f}**" if value == max(here.values()) else f"{value:.1f}" for value in here.values()]
            lines.append(f"| {name} | {' | '.join(row)} |")
        lines.append("")
    return "\n".join(lines)


def few_labels_lines(path: Path) -> list[str]:
    """Mean ranks and accuracies of ``few_labels.py``, and how often the classifier is near its best rival."""
    result = json.loads(path.read_text(encoding="utf-8"))
    settings, summary = result["settings"], summaries(result["sets"])
    test = " --test" if settings["part"] == "test" else ""
    methods = list(next(iter(summary["all"].values()))["rank"])
    columns = [(half, labels) for labels in summary["all"] for half in summary if labels in summary[half]]
    titles = [f"{labels} labels, {summary[half][labels]['sets']} sets {half}" for half, labels in columns]
    lines = [
        f"`python benchmarks/few_labels.py{test}`; seed {settings['seed']}, {settings['draws']} draws of labels; "
        f"{describe(result['environment'])}",
        "",
        f"| mean rank (accuracy) | {' | '.join(title.removesuffix(' all') for title in titles)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for method in methods:
        found = [summary[half][labels] for half, labels in columns]
        row = [f"{one['rank'][method]:.2f} ({100 * one['accuracy'][method]:.1f})" for one in found]
        lines.append(f"| {method} | {' | '.join(row)} |")
    near = [f"{summary[half][labels]['near']:.0%}" for half, labels in columns]
    clairvoyant = [f"{summary[half][labels]['clairvoyant']:.0%}" for half, labels in columns]
    worst = [f"{100 * summary[half][labels]['worst']:+.1f}" for half, labels in columns]
    trust = {
        method: {
            key: fmean(one["calibration"][method][key] for one in result["sets"].values())
            for key in ("error", "log_loss")
        }
        for method in ("PiNDAClassifier", "logistic")
    }
    ours, plain = trust["PiNDAClassifier"], trust["logistic"]
    return [
        *lines,
        f"| sets within a point of the best rival | {' | '.join(near)} |",
        f"| the same for a clairvoyant | {' | '.join(clairvoyant)} |",
        f"| points to the best rival, at worst | {' | '.join(worst)} |",
        "",
        "The clairvoyant takes, for each draw, the rival with the best *test* accuracy in the other draws. No user can "
        "choose so well, and draws differ so much that even it is often more than a point below the best.",
        "",
        f"Probabilities with 10 labels: the gap between confidence and accuracy is {ours['error']:.3f}, against "
        f"{plain['error']:.3f} for logistic regression on raw features, and the log loss {ours['log_loss']:.2f} "
        f"against {plain['log_loss']:.2f} (means over sets).",
    ]


def blocks(path: Path) -> str:
    """The section on the sizes of the embedding's blocks."""
    return "\n".join(["## How large the blocks of the embedding are\n", *blocks_lines(path), ""])


def blocks_lines(path: Path) -> list[str]:
    """The tables of ``blocks.py``, means over the data sets."""
    result = json.loads(path.read_text(encoding="utf-8"))
    rows = result["rows"]
    weights, sizes = list(rows[0]["weights"]), list(rows[0]["sizes"])
    lines = [
        f"`python benchmarks/blocks.py`; {len(rows)} sets, seed {result['seed']}; {describe(result['environment'])}",
        "",
        f"| weight of the learned block | {' | '.join(weights)} |",
        f"|---|{'---|' * len(weights)}",
    ]
    for score, title in (("few", "few-label"), ("knn", "kNN")):
        means = [fmean(row["weights"][weight][score] for row in rows) for weight in weights]
        gaps = [min(row["weights"][weight][score] - row["weights"]["0"][score] for row in rows) for weight in weights]
        lines.append(f"| {title} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
        lines.append(f"| {title}, largest loss to weight 0 | {' | '.join(f'{max(0, -gap):.1f}' for gap in gaps)} |")
    means = [fmean(row["sizes"][size] for row in rows) for size in sizes]
    return [
        *lines,
        "",
        f"| factor of the whole embedding | {' | '.join(sizes)} |",
        f"|---|{'---|' * len(sizes)}",
        f"| few-label | {' | '.join(f'{mean:.1f}' for mean in means)} |",
    ]


def tails(path: Path) -> str:
    """The section on heavy tails."""
    return "\n".join(["## What compressing heavy tails is worth\n", *tails_lines(path), ""])


def tails_lines(path: Path) -> list[str]:
    """The table of ``tails.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    titles = {"few": "few-label", "knn": "kNN"}
    columns = [
        (scaling, method, score)
        for scaling in ("features", "compressed")
        for method in ("raw", "PiNDA")
        for score in titles
    ]
    lines = [
        f"`python benchmarks/tails.py FOLDER`; seeds {', '.join(map(str, result['seeds']))}; "
        f"{describe(result['environment'])}",
        "",
        f"| | auto | {' | '.join(f'{scaling}: {method}, {titles[score]}' for scaling, method, score in columns)} |",
        f"|---|---|{'---|' * len(columns)}",
    ]
    for name, found in result["sets"].items():
        figures = [found[scaling][method][score] for scaling, method, score in columns]
        cells = [f"{figure['mean']:.1f} ± {figure['std']:.1f}" for figure in figures]
        lines.append(f"| {name} | {found['auto']} | {' | '.join(cells)} |")
    return lines


def with_clae(path: Path) -> str:
    """The section on π-noise with an adversarial example beside it."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## π-noise with CLAE's adversarial example\n",
        f"`python benchmarks/with_clae.py`; {len(result['sets'])} sets, seed {result['seed']}; "
        f"{describe(result['environment'])}\n",
        "On validation rows. The worst loss is against raw features, and so is the number of sets above them.\n",
        "| | few-label | rank | worst | above raw | kNN | rank | worst | above raw |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    few, knn = result["summary"]["few"], result["summary"]["knn"]
    for variant in sorted(few, key=lambda variant: few[variant]["rank"]):
        cells = [
            f"{found['mean']:.1f} | {found['rank']:.2f} | {found['worst']:+.1f} | {found['above']}"
            for found in (few[variant], knn[variant])
        ]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def image_cost(path: Path) -> str:
    """The tables of ``image_cost.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        "## The cost of noise on images\n",
        f"`python benchmarks/image_cost.py`; {describe(result['environment'])}\n",
        f"ResNet18 of width {result['width']}, batches of {result['batch_size']} images of 32 × 32 × 3, SimCLR with "
        "its augmentations and noise as one more. Steps are timed in turns; the table has medians. Operations are for "
        "one image with a learned μ: products only, and with four operations for every normalised number, beside the "
        "paper's.\n",
        "| | step (s) | × SimCLR | peak memory (GB) | products | with normalisation | paper |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, times in result["steps"].items():
        counts = result["operations"].get("SimCLR's encoder" if name == "SimCLR" else name, {})
        figures = [f"{counts[key]:.2e}" if key in counts else "" for key in ("multiply_accumulates", "total", "paper")]
        memory = result["peak_memory_gb"][name]
        row = [name, f"{times['seconds']:.2f}", f"{times['ratio']:.2f}", f"{memory:.2f}", *figures]
        lines.append(f"| {' | '.join(row)} |")
    lines += [
        "",
        "A forward and a backward pass of the encoder, in seconds:\n",
        "| width | channels apart | channels together |",
    ]
    lines.append("|---|---|---|")
    for width, seconds in result["encoder_seconds"].items():
        lines.append(f"| {width} | {seconds['channels apart']:.3f} | {seconds['channels together']:.3f} |")
    return "\n".join([*lines, ""])


def knn(path: Path) -> str:
    """The table of ``knn.py``."""
    result = json.loads(path.read_text(encoding="utf-8"))
    rows = result["results"]
    different = {row["data"]: row["different_predictions"] for row in rows if row["different_predictions"]}
    differs = "; ".join(f"{count} on {data}" for data, count in different.items()) or "none"
    lines = [
        "## The cost of kNN\n",
        f"`python benchmarks/knn.py`; {describe(result['environment'])}\n",
        "Products propose a few rows more than k, and differences rank them; of equal ones the first row comes first. "
        f"Predictions that differ: {differs}. Ratios of time are medians of {result['rounds']} alternating rounds in "
        "one process, beside other work; memory is beyond the data.\n",
        "| | training rows | test rows | features | time × scikit-learn | memory (MB) | scikit-learn's (MB) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = [str(row[key]) for key in ("data", "train_rows", "test_rows", "features", "ratio")]
        memory = [f"{row['peak_memory_mb'][name]:.0f}" for name in ("pinoise", "scikit-learn")]
        lines.append(f"| {' | '.join([*figures, *memory])} |")
    return "\n".join([*lines, ""])


def clae_attack_lines(path: Path) -> list[str]:
    """Return the table of CLAE's adversarial examples beside π-noise."""
    rows, titles = json.loads(path.read_text(encoding="utf-8"))["rows"], {"few": "few-label", "knn": "kNN"}
    lines = [f"| data | | against | {' | '.join(titles.values())} |", "|---|---|---|---|---|"]
    for row in rows:
        figures = [f"{row[score][0]:.1f} ± {row[score][1]:.1f}" for score in titles]
        lines.append(f"| {row['data']} | {row['method']} | {row['against']} | {' | '.join(figures)} |")
    return lines


def _unique(items: Any) -> list[str]:
    return list(dict.fromkeys(items))


def _figure(line: Line, score: str) -> str:
    return f"{line.means[score]:.1f} ± {line.stds[score]:.1f}" if score in line.means else "–"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


SECTIONS = (
    ("vectors_*.json", suite),
    ("compare_*.json", comparison),
    ("images.json", images),
    ("image_noise.json", image_noise),
    ("nuisance.json", nuisance),
    ("choices.json", choices),
    ("noise_choice.json", noise_choice),
    ("few_labels_test.json", few_labels),
    ("blocks.json", blocks),
    ("with_clae.json", with_clae),
    ("tails.json", tails),
    ("mixed_table.json", mixed_table),
    ("neighbour_agreement.json", neighbour_agreement),
    ("neighbours_at_size.json", neighbours),
    ("bench.json", bench),
    ("image_cost.json", image_cost),
    ("knn.json", knn),
    ("hostile.json", hostile),
    ("faults.json", faults),
)


def draw(cells: list[Cell], path: Path) -> None:
    """Draw which methods can be told apart."""
    titles = {"few": "few-label", "knn": "kNN"}
    found = {title: critical_difference(summarise(cells), score) for score, title in titles.items()}
    shown = {f"{title}, mean rank over {each.sets} sets": each for title, each in found.items() if each is not None}
    path.write_bytes(to_png(rank_diagrams(shown, {name: recipe.title for name, recipe in RECIPES.items()})))


def put(document: Path, name: str, lines: list[str]) -> None:
    """Put a table into a document between its marks."""
    begin, end = (mark.format(name=name) for mark in MARKS)
    before, rest = document.read_text(encoding="utf-8").split(begin)
    after = rest.split(end, 1)[1]
    document.write_text(before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after, encoding="utf-8")


def main() -> None:
    parts = [HEAD, *(render(path) for pattern, render in SECTIONS for path in sorted(RESULTS.glob(pattern)))]
    (RESULTS / "README.md").write_text("\n".join(parts), encoding="utf-8")
    cells = read(RESULTS / "vectors_joined.json")[1]
    put(ROOT / "README.md", "vectors", standing(cells))
    draw(cells, ROOT / "docs" / "critical_difference.png")
    cells = read(RESULTS / "images.json")[1]
    put(ROOT / "docs" / "images.md", "images", [*across(cells), "", *added(cells)])
    put(ROOT / "docs" / "images.md", "image noise", image_noise_lines(RESULTS / "image_noise.json"))
    put(ROOT / "docs" / "which_noise.md", "noise choice", noise_choice_lines(RESULTS / "noise_choice.json"))
    put(ROOT / "docs" / "noise.md", "blocks", blocks_lines(RESULTS / "blocks.json"))
    put(ROOT / "docs" / "noise.md", "heavy tails", tails_lines(RESULTS / "tails.json"))
    put(ROOT / "docs" / "noise.md", "neighbours", neighbours_lines(RESULTS / "neighbours_at_size.json"))
    put(ROOT / "docs" / "data.md", "larger than memory", memory_lines(RESULTS / "larger_than_memory.json"))
    put(ROOT / "docs" / "paper.md", "CLAE's attack", clae_attack_lines(RESULTS / "clae_attack.json"))
    speed = json.loads((RESULTS / "bench.json").read_text(encoding="utf-8"))
    put(ROOT / "docs" / "speed.md", "speed", bench_lines(RESULTS / "bench.json"))
    put(ROOT / "docs" / "speed.md", "operations of a step", speed_tables.operations(speed))
    put(ROOT / "docs" / "speed.md", "profile of a fit", speed_tables.profile(speed))
    put(ROOT / "docs" / "cluster.md", "checked step times", speed_tables.checked(speed))
    put(ROOT / "docs" / "cluster.md", "step times", speed_tables.extrapolated(speed))
    put(ROOT / "docs" / "cluster.md", "faults", faults_lines(RESULTS / "faults.json"))
    put(ROOT / "docs" / "security.md", "hostile", hostile_lines(RESULTS / "hostile.json"))


if __name__ == "__main__":
    main()
