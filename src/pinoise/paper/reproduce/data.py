"""The data of an item: the paper's own where it is on this machine, else what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pinoise.paper.catalogue import locate
from pinoise.paper.reproduce.paper import Item, PaperSource, find_item


class UsedSet(NamedTuple):
    """The data set that an item is run on for one of the paper's."""

    key: str
    title: str  # in the paper
    wanted: str  # the paper's, by its name in the catalogue
    name: str
    score_on: str | None = None

    @property
    def is_stand_in(self) -> bool:
        """Whether it is not the paper's own."""
        return self.name != self.wanted

    @property
    def shown(self) -> str:
        """What was used, for a table.

        >>> UsedSet("har", "HAR", "har", "hapt561").shown, UsedSet("har", "HAR", "har", "har").shown
        ('HAR (stand-in hapt561)', 'HAR')
        """
        used = self.name if self.score_on is None else f"{self.name}, scored on {self.score_on}"
        return f"{self.title} (stand-in {used})" if self.is_stand_in else self.title

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self._asdict(), "stand_in": self.is_stand_in}


def used_for(key: str, source: PaperSource) -> UsedSet | None:
    """Return the set to use for one of the paper's, None if neither it nor its stand-in is on this machine."""
    if is_here(source.source) and (source.score_on is None or is_here(source.score_on)):
        return UsedSet(key, source.title, source.source, source.source, source.score_on)
    if source.stand_in is not None and is_here(source.stand_in):
        return UsedSet(key, source.title, source.source, source.stand_in, source.stand_in_score_on)
    return None


def is_here(name: str) -> bool:
    """Whether a set of the catalogue can be read without a download.

    >>> is_here("digits")
    True
    """
    return all(locate(name).values())


def presence(item: Item, scale: str) -> dict[str, str]:
    """Return for every data set of an item whether it is here: ``present``, ``stand-in`` with its name, ``absent``."""
    found = {}
    for key in item.sets(scale):
        used = used_for(key, item.data[key])
        where = "absent" if used is None else f"stand-in {used.name}" if used.is_stand_in else "present"
        found[item.data[key].title] = where
    return found


def listing(names: Sequence[str], scale: str) -> list[dict[str, Any]]:
    """Return what is known about items before they are run, as plain values."""
    return [
        {
            **{"item": item.name, "title": item.title, "label": item.label, "kind": item.kind, "scale": scale},
            **{"data": presence(item, scale), "time": item.scales[scale].time},
        }
        for item in map(find_item, names)
    ]


def states(data: dict[str, str]) -> str:
    """Return the data sets by where they are.

    >>> states({"HAR": "stand-in hapt561", "Fashion-MNIST": "present", "STL-10": "present"})
    'present Fashion-MNIST, STL-10; stand-in HAR'
    """
    groups: dict[str, list[str]] = {"present": [], "stand-in": [], "absent": []}
    for title, state in data.items():
        groups[state.partition(" ")[0]].append(title)
    return "; ".join(f"{state} {', '.join(titles)}" for state, titles in groups.items() if titles)
