"""Every method on every data set under the same encoder, steps and evaluation; labels are used only to score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pinoise.choices import SCORES, EmbeddingName
from pinoise.data.dataset import Dataset, fingerprint_parts
from pinoise.data.standardizer import Scaling
from pinoise.experiments.cache import CellCache, by_content
from pinoise.experiments.plans import Plans, with_steps
from pinoise.experiments.recipes import RECIPES, sees_features
from pinoise.experiments.results import Cell
from pinoise.experiments.scoring import PreparedSet, fit_cells
from pinoise.experiments.sources import check_scorable, scored_part
from pinoise.training.callbacks import Quiet, Reporter
from pinoise.training.config import Settings

CELL_FORMAT = 4  # raised whenever a change of the code makes cached cells wrong


def fit_all(
    datasets: Iterable[Dataset],
    plans: Plans,
    *,
    embeddings: Sequence[EmbeddingName] = ("joined",),
    scores: Sequence[str] = SCORES,
    steps: int | None = None,
    cache: CellCache | None = None,
    reporter: Callable[[str], Reporter] = lambda _: Quiet(),
) -> Iterator[Cell]:
    """Yield the cells of the table as they are finished, data set by data set.

    Args:
        datasets: labelled sets with a test part, or sets that are scored on such a one.
        plans: the settings of every method and seed.
        embeddings: what is scored of every fit.
        scores: which are computed.
        steps: about how many steps every fit takes, whatever the number of rows; the plans' epochs if None.
        cache: where finished cells are kept, and looked for first; those of a user's own module are not.
        reporter: makes the reporter of a fit from its title.
    """
    for data in map(check_scorable, datasets):
        prepared: dict[Scaling, PreparedSet] = {}
        identity = {"data": data.name, "checksum": fingerprint_parts(data), "pinoise": version("pinoise")}
        if scored_part(data) is not data:
            identity["scored"] = fingerprint_parts(scored_part(data))
        for (method, seed), planned in plans.items():
            settings = planned if steps is None else with_steps(planned, steps, rows=len(data.train))
            about = {**identity, "method": method, "settings": _what_counts(method, settings), "format": CELL_FORMAT}
            about["scores"] = sorted(scores)
            parts = {name: {**about, "seed": seed, "embedding": name} for name in embeddings}
            kept = None if _runs_foreign_code(method, settings) else cache
            cells = {name: _cached(kept, parts[name]) for name in embeddings}
            missing = [name for name in embeddings if cells[name] is None]
            if missing:
                scaling = settings.data.scaling
                if scaling not in prepared:
                    prepared[scaling] = PreparedSet(data, scaling)
                title = f"{data.name} · {RECIPES[method].title} · seed {seed}"
                for cell in fit_cells(prepared[scaling], method, settings, missing, reporter(title), scores=scores):
                    cells[cell.embedding] = cell
                    if kept is not None:
                        kept.put(parts[cell.embedding], cell.as_dict())
            yield from (cell for cell in cells.values() if cell is not None)


def _what_counts(method: str, settings: Settings) -> dict[str, Any]:
    """Return the settings that a cell depends on, with files by their content."""
    values = settings.model_dump(exclude={"data": {"source", "label"}, "embedding": True})
    counting: dict[str, Any] = by_content({"data": values["data"]} if sees_features(method) else values)
    return counting


def _runs_foreign_code(method: str, settings: Settings) -> bool:
    """Whether a cell depends on a user's own part, whose code has no checksum."""
    return not sees_features(method) and any(part.own for part in settings.parts.values())


def _cached(cache: CellCache | None, parts: Mapping[str, Any]) -> Cell | None:
    values = None if cache is None else cache.get(parts)
    return None if values is None else Cell.from_dict(values)
