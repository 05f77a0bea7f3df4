"""The quick version of the hostile suite: a case is a sentence or a right result. ``make hostile`` runs thousands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from tests.hostile.case import Case
from tests.hostile.families import quick
from tests.hostile.server import run_named, servers

SEED = 0
CASES = quick(SEED)

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite forks and watches processes: Linux")


@pytest.fixture(scope="session")
def server() -> Iterator[ProcessPoolExecutor]:
    """A warm process, one for each worker of the tests."""
    with servers(1) as pool:
        yield pool


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.label[:60]}".encode("ascii", "replace"))
def test_a_hostile_input_gets_a_sentence_or_a_right_result(server: ProcessPoolExecutor, case: Case) -> None:
    outcome = server.submit(run_named, case.name, SEED).result()
    again = f"again: python -m tests.hostile.run --seed {case.seed} --case {case.name}"
    assert outcome.kind in ("sentence", "right"), f"{outcome.cause}: {outcome.detail}\n{again}"
