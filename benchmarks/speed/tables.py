"""The tables that documents show of ``results/bench.json``."""

from __future__ import annotations

from typing import Any

from speed.aims import AIMS, PAPER
from speed.steps import FEATURES, RANDOM, VARIANTS

Result = dict[str, Any]


def ratios(result: Result) -> list[str]:
    """Return every ratio with its aim, or the paper's figure."""
    lines = ["| ratio | measured | aim | |", "|---|---|---|---|"]
    for name, measurement in result["measurements"].items():
        for title, ratio in measurement["ratios"].items():
            if title.startswith(f"{RANDOM} / {RANDOM}"):
                continue
            aim, remark = AIMS.get(title), ""
            if aim is not None:
                remark = "met" if aim.met(ratio) else "**missed**"
            elif title in PAPER:
                data, figure = PAPER[title]
                remark = f"the paper has {figure:.2f} on {data}"
            lines.append(f"| {title} | {ratio:.2f} | {'' if aim is None else aim} | {remark} |")
        if "skipped" in measurement:
            lines.append(f"| {name} | – | | skipped: {measurement['skipped']} |")
    return lines


def operations(result: Result) -> list[str]:
    """Return the operations of a step's products as multiples of those of random noise: no time can be below them."""
    rows = result["measurements"]["steps"]["steps"]
    counts = {(row["variant"], row["features"]): row["operations"] for row in rows}
    lines = [
        f"| products of a step / of one with random noise | {' | '.join(f'd = {d}' for d in FEATURES)} |",
        f"|---|{'---|' * len(FEATURES)}",
    ]
    for variant in VARIANTS:
        cells = [f"{counts[variant, features] / counts[RANDOM, features]:.2f}" for features in FEATURES]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return lines


def profile(result: Result) -> list[str]:
    """Return where the time of a default fit goes."""
    shares = result["measurements"]["fits"]["profile"]
    lines = ["| part of a default fit | share of its time |", "|---|---|"]
    return lines + [f"| {title} | {100 * share:.0f} % |" for title, share in shares.items()]


def checked(result: Result) -> list[str]:
    """Return measured and calculated step times of one and two processes."""
    found = result["measurements"]["processes"]
    constants = found["constants"]
    lines = [
        f"`make bench`, commit {found['commit']}: a = {1e6 * constants['row']:.0f} µs, "
        f"b = {1e3 * constants['fixed']:.1f} ms, c = {1e9 * constants['pair']:.1f} ns, "
        f"s = {constants['slowdown']:.2f}, "
        f"latency {1e6 * constants['latency']:.0f} µs, bandwidth {constants['bandwidth'] / 1e9:.2f} GB/s, "
        f"{constants['weights']:,} weights.",
        "",
        "| processes | batch | measured (ms) | calculated (ms) |",
        "|---|---|---|---|",
    ]
    for row in found["checked"]:
        times = f"{1e3 * row['measured']:.1f} | {1e3 * row['calculated']:.1f}"
        lines.append(f"| {row['processes']} | {row['batch']} | {times} |")
    return lines


def extrapolated(result: Result) -> list[str]:
    """Return calculated step times on common networks, and how many times as fast that is as one process."""
    rows = result["measurements"]["processes"]["extrapolated"]
    counts = sorted({row["processes"] for row in rows})
    seconds = {(row["network"], row["batch"], row["processes"]): row["seconds"] for row in rows}
    lines = [
        f"| network | batch | {' | '.join(f'{k} processes' if k > 1 else 'one process' for k in counts)} |",
        f"|---|---|{'---|' * len(counts)}",
    ]
    for network, batch in dict.fromkeys((row["network"], row["batch"]) for row in rows):
        one = seconds[network, batch, 1]
        cells = [
            f"{1e3 * seconds[network, batch, k]:.1f} ms ({one / seconds[network, batch, k]:.1f} ×)" for k in counts
        ]
        lines.append(f"| {network} | {batch} | {' | '.join(cells)} |")
    return lines
