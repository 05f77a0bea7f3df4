"""A checkpoint that is cut short or has a wrong bit, anywhere: noticed, and the one before it is used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults.commands import ended, run, start
from tests.faults.conftest import Wholes
from tests.faults.kills import Whole
from tests.faults.states import check_same
from tests.training.test_checkpoint import content_of

from pinoise.training.checkpoint import LAST, PREVIOUS, DamagedError

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the suite watches files and processes: Linux")

REGIONS = 300  # of a file, in each of which a bit is turned


@pytest.fixture
def copied(wholes: Wholes, request: pytest.FixtureRequest) -> Iterator[tuple[Whole, Path]]:
    """A finished run, a copy of it beside it, and the files of its two checkpoints."""
    whole = wholes("array in a file")
    place = whole.home / request.node.name
    shutil.copytree(whole.home / "0", place)
    yield whole, place / "run"
    shutil.rmtree(place)


def damages(content: bytes) -> Iterator[bytes]:
    """Yield the content cut short, and with a wrong bit, in every region of it and at its ends."""
    for region in range(REGIONS):
        place = region * len(content) // REGIONS
        yield content[:place]
        yield content[:place] + bytes([content[place] ^ 1 << region % 8]) + content[place + 1 :]
    for length in (1, 20, 64, 86):  # the end of the archive
        yield content[:-length]
        yield content[:-length] + bytes([content[-length] ^ 1]) + content[len(content) - length + 1 :]
    yield content + b"\0"


def test_no_damage_of_a_checkpoint_changes_what_is_read_wherever_it_is(array: Whole, tmp_path: Path) -> None:
    content = (array.home / "0/run/checkpoints" / LAST).read_bytes()
    damaged = tmp_path / LAST
    damaged.write_bytes(content)
    expected = content_of(damaged)
    for damage in damages(content):
        assert damage != content
        damaged.write_bytes(damage)
        with suppress(DamagedError):
            assert content_of(damaged) == expected


def test_a_damaged_checkpoint_gives_way_to_the_one_before_and_training_ends_the_same(
    copied: tuple[Whole, Path],
) -> None:
    whole, folder = copied
    last = folder / "checkpoints" / LAST
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 4
    last.write_bytes(content)
    (folder / "encoder.safetensors").unlink()  # as in a run that has not ended
    done = run("train", "--resume", folder.relative_to(whole.home), where=whole.home)
    assert "note: checkpoint last.ckpt is damaged (archive/" in done.err
    assert (folder / "checkpoints/damaged.ckpt").read_bytes() == content
    (folder / "checkpoints/damaged.ckpt").unlink()
    check_same(whole.state, folder)


def test_two_damaged_checkpoints_are_one_sentence_and_are_left_as_they_are(copied: tuple[Whole, Path]) -> None:
    whole, folder = copied
    for name in (LAST, PREVIOUS):
        path = folder / "checkpoints" / name
        path.write_bytes(path.read_bytes()[:-1000])
    before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    sentence = ended(start("train", "--resume", folder.relative_to(whole.home), where=whole.home)).sentence
    assert "has no intact checkpoint: checkpoint last.ckpt is damaged (it cannot be read: BadZipFile" in sentence
    assert "Start the run again in a new folder." in sentence
    assert {path: path.read_bytes() for path in before} == before
