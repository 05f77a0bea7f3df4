"""``pinoise datasets``: what the catalogue holds."""

from __future__ import annotations

from pinoise.cli.console import print_json, print_table
from pinoise.cli.options import JsonOption


def datasets(json: JsonOption = False) -> None:
    """List the data sets of the catalogue, and which of them are on this machine.

    Example: `pinoise datasets`
    """
    from pinoise.data.catalogue import entries, locate

    found = {entry.name: all(locate(entry.name).values()) for entry in entries()}
    if json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.title,
                    "shape": list(entry.shape),
                    "classes": entry.classes,
                    "rows": list(entry.rows),
                    "split": entry.split,
                    "licence": entry.licence,
                    "source": entry.source,
                    "files": [{"name": file.name, "sha256": file.sha256, "url": file.url} for file in entry.files],
                    "found": found[entry.name],
                }
                for entry in entries()
            ]
        )
        return
    print_table(
        ["name", "rows", "sample", "classes", "here", "what it is"],
        [
            [
                entry.name,
                " / ".join(f"{rows:,}" for rows in entry.rows if rows),
                " × ".join(map(str, entry.shape)),
                str(entry.classes or "–"),
                "yes" if found[entry.name] else "no",
                entry.title,
            ]
            for entry in entries()
        ],
        words=(0, 4, 5),
    )
    print("'no': set PINOISE_DATA to the folder that holds the files, or let pinoise download what has an address.")
