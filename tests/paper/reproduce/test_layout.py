"""Tables of text: a cost is signed where it is what noise adds, and plain where it is that of the whole."""

from __future__ import annotations

import pytest

from pinoise.paper.reproduce.layout import tables
from pinoise.paper.reproduce.outcome import OutcomeLine, Reproduction
from pinoise.paper.reproduce.paper import find_item


@pytest.mark.parametrize(("name", "data", "sign"), [("T6", "stl10", "+"), ("T11", "cifar10", "")])
def test_a_cost_is_signed_where_noise_adds_it(name: str, data: str, sign: str) -> None:
    line = OutcomeLine(
        data, "group", "with noise", "aug-paper", {"memory": [18.11]}, {"memory": [14.9]}, above="without"
    )
    (table,) = tables(Reproduction(find_item(name), "small", [0], [], 1, 1, lines=[line]))
    assert table.rows == [["with noise", f"{sign}18.1", f"{sign}14.9", "-17.7%", ""]]
