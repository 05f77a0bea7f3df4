from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.images import looks
from pinoise.data.images.decoding import Look, look
from pinoise.data.images.folders import list_images
from pinoise.data.images.looks import look_at


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(looks, "WORTH", 3)
    for number in range(4):
        path = tmp_path / "photos" / f"{number % 2}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB" if number else "L", (5 + number, 4)).save(path)
    return tmp_path / "photos"


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened from now on."""
    seen: list[str] = []

    def remember(path: Path) -> Look:
        seen.append(path.name)
        return look(path)

    monkeypatch.setattr(looks, "look", remember)
    return seen


def expected(folder: Path) -> dict[str, Look]:
    return {path.relative_to(folder).as_posix(): look(path) for path in sorted(folder.rglob("*.png"))}


def test_unchanged_files_are_looked_at_once(folder: Path, looked_at: list[str]) -> None:
    first = look_at(list_images(folder))
    assert sorted(looked_at) == ["0.png", "1.png", "2.png", "3.png"]
    assert first == expected(folder)
    looked_at.clear()
    assert look_at(list_images(folder)) == first
    assert list(look_at(list_images(folder))) == list(first)
    assert looked_at == []


def test_changed_and_new_files_are_looked_at_again_and_no_others(folder: Path, looked_at: list[str]) -> None:
    look_at(list_images(folder))
    looked_at.clear()
    Image.new("L", (9, 9)).save(folder / "0/2.png")  # another size
    os.utime(folder / "1/1.png", ns=(1, 1))
    Image.new("L", (2, 2)).save(folder / "1/new.png")
    (folder / "1/3.png").unlink()
    assert look_at(list_images(folder)) == expected(folder)
    assert sorted(looked_at) == ["1.png", "2.png", "new.png"]
    looked_at.clear()
    look_at(list_images(folder))
    assert looked_at == []


def test_a_file_with_a_problem_is_looked_at_every_time(folder: Path, looked_at: list[str]) -> None:
    (folder / "0/2.png").write_bytes(b"no image")
    for _ in range(2):
        looked_at.clear()
        found = look_at(list_images(folder))
        assert found["0/2.png"].problem is not None
    assert looked_at == ["2.png"]


def test_few_files_leave_nothing_in_the_cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "WORTH", 5)
    look_at(list_images(folder))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "content", ["", "[1]", '{"version": 1, "files": {"0/0.png": [1]}}', '{"version": 0, "files": {}}', '{"files": 3}']
)
def test_a_damaged_record_is_made_anew(content: str, folder: Path, tmp_path: Path, looked_at: list[str]) -> None:
    first = look_at(list_images(folder))
    (record,) = (tmp_path / "cache/looks").glob("*.json")
    sound = record.read_text()
    record.write_text(content)
    looked_at.clear()
    assert look_at(list_images(folder)) == first
    assert len(looked_at) == 4
    assert record.read_text() == sound


def test_a_cache_that_cannot_be_written_is_no_hindrance(folder: Path, tmp_path: Path, looked_at: list[str]) -> None:
    (tmp_path / "cache").write_text("a file")
    for _ in range(2):
        assert look_at(list_images(folder)) == expected(folder)
    assert len(looked_at) == 8


def test_folders_of_one_name_have_their_own_records(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other/photos"
    for number in range(3):
        other.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((7, 7), np.uint8)).save(other / f"{number}.png")
    for each in (folder, other, folder, other):
        found: dict[str, Any] = look_at(list_images(each))
        assert found == expected(each)
    assert len(list((tmp_path / "cache/looks").glob("*.json"))) == 2


def test_of_several_that_look_at_once_one_looks(folder: Path, looked_at: list[str]) -> None:
    listing = list_images(folder)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(look_at, [listing] * 4))
    assert found == [expected(folder)] * 4
    assert sorted(looked_at) == ["0.png", "1.png", "2.png", "3.png"]
