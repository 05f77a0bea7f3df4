"""The paper's tables and figures as data: the rows of each, its scales, and the paper's own numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from pinoise.choices import EmbeddingName
from pinoise.errors import unknown_choice

Kind = Literal["accuracy", "sweep", "data", "cost", "noise", "curves"]
ScaleName = Literal["paper", "small", "smoke"]

SCALES: tuple[ScaleName, ...] = get_args(ScaleName)
SCALE: ScaleName = "small"  # if the user names none

COSTS = ("seconds", "flops", "memory")

# What the columns of items are called in tables.
COLUMNS = {
    "knn": "kNN",
    "sr": "SR",
    "rows": "rows",
    "classes": "classes",
    "seconds": "s per epoch",
    "flops": "FLOPs",
    "memory": "GB",
    "sigma": "mean σ",
    "edges": "σ and edges",
    "mu_edges": "μ and edges",
    "contrast": "last ℓ",
    "task_entropy": "H(T)",
    "conditional_entropy": "H(T|E)",
    "plug_in": "plug-in MI",
    "information": "exact MI",
}

Numbers = Mapping[str, Sequence[float]]  # a column's mean and, where the paper has it, standard deviation
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class PaperSource(NamedTuple):
    """A data set of the paper, and the one of the catalogue that stands in for it where it is absent."""

    title: str
    source: str
    score_on: str | None = None  # another set whose labels score
    stand_in: str | None = None
    stand_in_score_on: str | None = None
    pixels: int | None = None  # a side of its images in the paper


class Row(NamedTuple):
    """One row: a recipe of ``recipes.toml`` with settings of its own."""

    title: str
    recipe: str | Sequence[str] = ()  # of several, the one with the best kNN on the test rows is shown
    settings: Mapping[str, Any] = _NOTHING
    embedding: EmbeddingName = "learned"
    above: str | None = None  # the title of the row that the paper compares it with, or adds its cost to
    counted: int | None = None  # samples whose operations the paper counts; those of the group if None
    notes: Mapping[str, str] = _NOTHING  # why ours differs, by data set
    paper: Mapping[str, Numbers] = _NOTHING  # by data set

    @property
    def recipes(self) -> tuple[str, ...]:
        """The recipes that are tried."""
        return (self.recipe,) if isinstance(self.recipe, str) else tuple(self.recipe)


class SetGroup(NamedTuple):
    """Rows with settings in common."""

    title: str
    rows: Sequence[Row]
    settings: Mapping[str, Any] = _NOTHING
    data: Sequence[str] | None = None  # all sets of the item if None
    counted: int = 1
    papers: bool = True  # whether the item's options, which are the paper's, count
    at: Mapping[str, Mapping[str, Any]] = _NOTHING  # further settings at a scale
    left_out: Sequence[str] = ()  # scales at which the rows would take too long


class Scale(NamedTuple):
    """How large an item is run. What is not given is as in the paper, or all there is."""

    time: str  # that it takes, about, and where
    seeds: int = 1
    data: Sequence[str] | None = None
    rows: int | None = None
    test_rows: int | None = None
    pixels: int | None = None  # the most a side
    costs: Sequence[str] = COSTS  # the columns of cost that are filled in
    timed_steps: int = 0  # from which the seconds of an epoch are calculated
    settings: Mapping[str, Any] = _NOTHING
    sizes: Mapping[str, Any] = _NOTHING  # options of parts, which count where a part has them


class Item(NamedTuple):
    """A table or figure of the paper."""

    name: str
    title: str
    label: str  # in the paper's source
    kind: Kind
    columns: Sequence[str]
    data: Mapping[str, PaperSource]
    groups: Sequence[SetGroup]
    scales: Mapping[str, Scale]
    settings: Mapping[str, Any] = _NOTHING
    options: Mapping[str, Any] = _NOTHING  # the paper's, of parts, which count where a part has them
    swept: Literal["batch_size", "epochs"] = "batch_size"  # of training, in an item of kind sweep
    claim: str | None = None
    oddities: Sequence[str] = ()

    def part(self, scale: str) -> Item:
        """Return the item with the groups that are run at a scale.

        >>> len(find_item("T3").part("paper").groups) - len(find_item("T3").part("small").groups)
        2
        """
        return self._replace(groups=[group for group in self.groups if scale not in group.left_out])

    def sets(self, scale: str) -> list[str]:
        """Return the data sets at a scale."""
        return list(self.scales[scale].data or self.data)

    @property
    def costs_are_added(self) -> bool:
        """Whether the cost of a row that is compared with another one is what its noise adds, not that of the whole."""
        return "flops" in self.columns

    def rows_on(self, key: str) -> Iterator[tuple[SetGroup, Row]]:
        """Yield the rows of a data set: those with a number of the paper for it, and those without any at all."""
        for group in self.groups:
            if group.data is None or key in group.data:
                yield from ((group, row) for row in group.rows if not row.paper or key in row.paper)

    def pixels(self, key: str, scale: str) -> int | None:
        """Return the side of the images of a data set at a scale."""
        own, most = self.data[key].pixels, self.scales[scale].pixels
        return own if own is None or most is None else min(own, most)

    def settings_of(self, group: SetGroup, row: Row, scale: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the settings of a row at a scale, and the options of parts that count where a part has them."""
        from pinoise.training.config import merge

        chosen = self.scales[scale]
        layers = (self.settings, group.settings, row.settings, chosen.settings, group.at.get(scale, {}))
        return reduce(merge, layers, {}), merge(self.options if group.papers else {}, chosen.sizes)


def find_item(name: str) -> Item:
    """Return the item of a name.

    >>> find_item("T2").label, find_item("T2").kind
    ('table_non_vision', 'accuracy')
    >>> find_item("t2")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown item 't2': did you mean 'T2'? Allowed: T1, T2, T3, T4, T5, T6, T7, T8, T9, \
T10, T11, F1, F4, F5, F6, F7, F8, epochs, information.
    """
    if name not in item_names():
        raise unknown_choice("item", name, item_names())
    return _read(name)


@cache
def item_names() -> tuple[str, ...]:
    """Return the names of all items: tables in the order of the paper's source, then figures, then the rest."""
    names = [path.stem for path in (Path(__file__).parent / "items").glob("*.toml")]
    return tuple(sorted(names, key=lambda name: ("TF".find(name[0]) % 3, len(name), name)))


@cache
def _read(name: str) -> Item:
    values = tomllib.loads((Path(__file__).parent / "items" / f"{name}.toml").read_text(encoding="utf-8"))
    values["data"] = {key: PaperSource(**source) for key, source in values["data"].items()}
    values["scales"] = {key: Scale(**scale) for key, scale in values["scales"].items()}
    values["groups"] = [
        SetGroup(**{**group, "rows": [Row(**row) for row in group["rows"]]}) for group in values["groups"]
    ]
    return Item(name=name, **values)
