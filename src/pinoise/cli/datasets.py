"""``pinoise datasets``: what the catalogue holds."""

from __future__ import annotations

from pinoise.cli.console import print_json, print_table
from pinoise.cli.options import JsonOption

_FACTS = ("name", "title", "shape", "classes", "rows", "split", "licence", "source")


def datasets(json: JsonOption = False) -> None:
    """List the data sets of the catalogue: which are here, which can be downloaded, and which need files of yours.

    Example: `pinoise datasets`
    """
    from pinoise.data.source import entries

    found = {entry.name: entry.availability for entry in entries()}
    if json:
        print_json(
            [
                {
                    **{fact: getattr(entry, fact) for fact in _FACTS},
                    "files": [{"name": file.name, "sha256": file.sha256, "url": file.url} for file in entry.files],
                    "found": found[entry.name] == "here",
                    "availability": found[entry.name],
                }
                for entry in entries()
            ]
        )
        return
    print_table(
        ["name", "rows", "sample", "classes", "data", "what it is"],
        [
            [
                entry.name,
                " / ".join(f"{rows:,}" for rows in entry.rows if rows),
                " × ".join(map(str, entry.shape)),
                str(entry.classes or "–"),
                found[entry.name],
                entry.title,
            ]
            for entry in entries()
        ],
        words=(0, 4, 5),
    )
    print("here: on this machine. download: fetched when it is first used.")
    print("your files: get them from the publisher ('pinoise datasets --json' has addresses) and set PINOISE_DATA to")
    print("the folder that holds them.")
