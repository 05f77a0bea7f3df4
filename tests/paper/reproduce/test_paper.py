"""The data of the items: complete, and every row of theirs a configuration at every scale."""

from __future__ import annotations

import pytest

from pinoise.choices import SCORES
from pinoise.experiments.plans import plan
from pinoise.experiments.recipes import RECIPES
from pinoise.paper.catalogue import is_name
from pinoise.paper.reproduce.paper import COLUMNS, SCALES, Item, find_item, item_names
from pinoise.training.config import merge

TABLES = [f"T{number}" for number in range(1, 12)]
FIGURES = ["F1", "F4", "F5", "F6", "F7", "F8"]
ITEMS = [find_item(name) for name in item_names()]
FITTED = [item for item in ITEMS if item.kind != "data"]
BESIDE = {"raw", "untrained"}


def by_name(item: Item) -> str:
    return item.name


def test_every_table_and_figure_with_results_is_an_item_in_the_papers_order() -> None:
    assert list(item_names()) == [*TABLES, *FIGURES, "epochs", "information"]
    assert len({item.label for item in ITEMS}) == len(ITEMS)


@pytest.mark.parametrize("item", ITEMS, ids=by_name)
def test_what_an_item_names_exists(item: Item) -> None:
    assert set(item.scales) == set(SCALES)
    assert set(item.columns) <= set(COLUMNS)
    for source in item.data.values():
        names = (source.source, source.score_on, source.stand_in, source.stand_in_score_on)
        assert all(name is None or is_name(name) for name in names)
    titles = [row.title for group in item.groups for row in group.rows]
    for group in item.groups:
        assert set(group.data or ()) <= set(item.data)
        for row in group.rows:
            assert set(row.recipes) <= set(RECIPES)
            assert row.above is None or row.above in titles
            assert set(row.paper) <= set(item.data)
            assert all(set(numbers) <= set(item.columns) for numbers in row.paper.values())
    for key in item.data:  # lines are told apart by their titles
        on_it = [row.title for _, row in item.rows_on(key)]
        assert len(on_it) == len(set(on_it)) > 0


@pytest.mark.parametrize("item", FITTED, ids=by_name)
def test_every_row_is_a_configuration_at_every_scale(item: Item) -> None:
    for scale in SCALES:
        for group in item.groups:
            for row in group.rows:
                settings, usual = item.settings_of(group, row, scale)
                if row.recipe == "aug-background":
                    settings = merge(settings, {"views": {"noise": {"masks": "masks.npy"}}})
                for planned in (plan([recipe], [0], settings=settings, usual=usual) for recipe in row.recipes):
                    (found,) = planned.values()
                    if group.papers and "temperature" in item.options.get("method", {}) and row.recipe != "raw":
                        assert found.method.options.get("temperature", 0.1) == pytest.approx(0.1)


@pytest.mark.parametrize("item", [item for item in ITEMS if item.kind in ("accuracy", "sweep")], ids=by_name)
def test_a_table_of_accuracies_has_the_rows_that_a_reader_asks_for(item: Item) -> None:
    assert {column for column in item.columns if column in SCORES} == {"knn", "sr"}
    for key in item.data:
        beside = [row for _, row in item.rows_on(key) if not row.paper and row.above is None]
        recipes = {recipe for row in beside for recipe in row.recipes}
        assert recipes >= BESIDE
        assert recipes & {"pinda", "aug-pinda"}
        tuned = [row.recipes for row in beside if len(row.recipes) > 1]
        assert {len(tried) for tried in tuned} == {3}


def test_the_papers_networks_and_batches_are_those_of_its_tables() -> None:
    item = find_item("T3")
    batches = {}
    for group in item.groups:
        settings, _ = item.settings_of(group, group.rows[0], "paper")
        batches[group.title] = settings["encoder"], settings["training"]["batch_size"], settings["training"]["epochs"]
    assert batches["SimCLR, ResNet50, batch of 64"] == ("resnet50", 64, 1000)
    assert batches["BYOL, 100 epochs"] == ("resnet18", 256, 100)


def test_our_own_default_keeps_its_own_temperature() -> None:
    item = find_item("T2")
    group = next(group for group in item.groups if not group.papers)
    settings, usual = item.settings_of(group, group.rows[0], "paper")
    (ours,) = plan(["pinda"], [0], settings=settings, usual=usual).values()
    (usual_plan,) = plan(["pinda"], [0], settings={}).values()
    assert ours.method == usual_plan.method
