"""Every FLOP figure of the paper's Tables 6, 9 and 10 beside ours, as the table in ``docs/paper.md``.

python benchmarks/paper_flops.py
"""

from __future__ import annotations

from pinoise.paper.cost_table import scientific
from pinoise.paper.reproduce.costs import paper_flops
from pinoise.paper.reproduce.paper import find_item
from render import ROOT, put

TABLES = ("T6", "T9", "T10")


def lines() -> list[str]:
    """Return the rows of the table; a figure that several data sets have in common stands once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in TABLES:
        item = find_item(name)
        for key, source in item.data.items():
            for group, row in item.rows_on(key):
                if "flops" not in row.paper.get(key, {}):
                    continue
                (paper,), ours = row.paper[key]["flops"], paper_flops(item, key, group, row)
                title = row.title.removeprefix(f"{source.title}, ")
                figures = (scientific(paper), scientific(ours), f"{100 * (ours / paper - 1):+.1f} %")
                counted = str(row.counted or group.counted)
                found.setdefault((name, title, counted, *figures, row.notes.get(key, "")), []).append(source.title)
    head = ["| table | data | row | samples | paper | ours | difference | |", "|---|---|---|---|---|---|---|---|"]
    return head + [
        f"| {name} | {', '.join(sources)} | {' | '.join(rest)} |" for (name, *rest), sources in found.items()
    ]


if __name__ == "__main__":
    put(ROOT / "docs" / "paper.md", "paper's FLOPs", lines())
