"""Every FLOP figure of the paper's cost tables comes out within 1 %, or a note says why not; the notes are true."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from pinoise.networks import MLPEncoder
from pinoise.noise import make_generator
from pinoise.paper.counting import count_operations
from pinoise.paper.reproduce.costs import paper_flops
from pinoise.paper.reproduce.paper import find_item


def figures() -> Iterator[tuple[str, str, str, float, float, str | None]]:
    """Yield table, data set, row, the paper's figure, ours and the note."""
    for name in ("T6", "T9", "T10"):
        item = find_item(name)
        for key in item.data:
            for group, row in item.rows_on(key):
                for figure in row.paper.get(key, {}).get("flops", ()):
                    yield name, key, row.title, figure, paper_flops(item, key, group, row), row.notes.get(key)


@pytest.mark.slow
def test_every_figure_is_within_1_percent_or_has_a_note() -> None:
    found = list(figures())
    assert len(found) == 16 + 16 + 8  # as many as the paper prints
    apart = {(table, key, row): note for table, key, row, paper, ours, note in found if abs(ours / paper - 1) > 0.01}
    assert all(apart.values()), apart
    assert {key for _, key, _ in apart} == {"stl10", "imagenet", "har", "reuters", "epsilon", "mslr"}


def test_the_paper_has_two_figures_for_one_u_net_and_ours_is_one_of_them() -> None:
    item = find_item("T6")
    for key in ("stl10", "imagenet"):
        u_nets = [(group, row) for group, row in item.rows_on(key) if row.title.endswith("generator U-Net")]
        assert [row.paper[key]["flops"] for _, row in u_nets] == [[4.73e12], [4.80e12]]
        beside_18, beside_50 = (paper_flops(item, key, group, row) for group, row in u_nets)
        assert beside_18 == beside_50 == pytest.approx(4.73e12, rel=0.005)


@pytest.mark.parametrize(
    ("features", "rows", "head", "figure"),
    [
        (561, 256, True, 4.99e8),
        (2000, 256, True, 8.76e8),
        (136, 256, True, 3.88e8),
        (2000, 512, False, 1.73e9),  # Epsilon
    ],
)
def test_the_baselines_of_vectors_are_the_papers_without_the_last_layer_of_the_head_or_without_it(
    features: int, rows: int, head: bool, figure: float
) -> None:
    with torch.device("meta"):
        first = nn.Linear(256, 256) if head else nn.Identity()
        found = count_operations(nn.Sequential(MLPEncoder((features,)), first), torch.empty(rows, features))
    assert found.total == pytest.approx(figure, rel=0.007)


def test_beside_a_resnet50_the_paper_counts_the_products_of_its_generator_alone() -> None:
    with torch.device("meta"):
        generator = make_generator("resnet50", (3, 96, 96), 2, options={"stem": "cifar"})
        found = count_operations(generator, torch.empty(512, 3, 96, 96))
    assert found.multiply_accumulates == pytest.approx(6.00e12, rel=0.002)
    assert found.total == pytest.approx(6.08e12, rel=0.002)


def test_with_bilinear_enlargement_the_unet_has_the_papers_figure_to_three_digits() -> None:
    with torch.device("meta"):
        unet = make_generator("unet", (3, 96, 96), 2, options={"width": 64, "depth": 4, "up_convolution": True})
        found = count_operations(unet, torch.empty(512, 3, 96, 96))
    enlarged = sum(channels * side**2 for channels, side in ((1024, 12), (512, 24), (256, 48), (128, 96)))
    assert f"{found.total + 11 * 512 * enlarged:.2e}" == "4.73e+12"
