from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pinoise.data.images import reading
from pinoise.data.images.decoding import Inspection, inspect_image
from pinoise.data.images.folders import list_images
from pinoise.data.images.reading import inspect_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading, "WORTH", 3)
    for number in range(4):
        path = tmp_path / "photos" / f"{number % 2}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB" if number else "L", (5 + number, 4)).save(path)
    return tmp_path / "photos"


@pytest.fixture
def inspected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened from now on."""
    seen: list[str] = []

    def remember(path: Path) -> Inspection:
        seen.append(path.name)
        return inspect_image(path)

    monkeypatch.setattr(reading, "inspect_image", remember)
    return seen


def expected(folder: Path) -> dict[str, Inspection]:
    return {path.relative_to(folder).as_posix(): inspect_image(path) for path in sorted(folder.rglob("*.png"))}


def test_unchanged_files_are_inspected_once(folder: Path, inspected: list[str]) -> None:
    first = inspect_folder(list_images(folder))
    assert sorted(inspected) == ["0.png", "1.png", "2.png", "3.png"]
    assert first == expected(folder)
    inspected.clear()
    assert inspect_folder(list_images(folder)) == first
    assert list(inspect_folder(list_images(folder))) == list(first)
    assert inspected == []


def test_all_files_are_inspected_again_once_one_changed_or_is_new(folder: Path, inspected: list[str]) -> None:
    inspect_folder(list_images(folder))
    inspected.clear()
    Image.new("L", (9, 9)).save(folder / "0/2.png")  # another size
    os.utime(folder / "1/1.png", ns=(1, 1))
    Image.new("L", (2, 2)).save(folder / "1/new.png")
    (folder / "1/3.png").unlink()
    assert inspect_folder(list_images(folder)) == expected(folder)
    assert sorted(inspected) == ["0.png", "1.png", "2.png", "new.png"]
    inspected.clear()
    inspect_folder(list_images(folder))
    assert inspected == []


def test_a_file_with_a_problem_is_inspected_every_time(folder: Path, inspected: list[str]) -> None:
    (folder / "0/2.png").write_bytes(b"no image")
    for _ in range(2):
        inspected.clear()
        found = inspect_folder(list_images(folder))
        assert found["0/2.png"].problem is not None
    assert inspected == ["2.png"]


def test_few_files_leave_nothing_in_the_cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WORTH", 5)
    inspect_folder(list_images(folder))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("file", ["about.json", "sizes.npy"])
def test_findings_that_somebody_wrote_to_are_made_again(
    file: str, folder: Path, tmp_path: Path, inspected: list[str]
) -> None:
    first = inspect_folder(list_images(folder))
    (path,) = (tmp_path / "cache/inspections").glob(f"*/{file}")
    path.write_bytes(path.read_bytes()[:-9])
    inspected.clear()
    for _ in range(2):
        assert inspect_folder(list_images(folder)) == first
    assert len(inspected) == 4


def test_a_cache_that_cannot_be_written_is_no_hindrance(folder: Path, tmp_path: Path, inspected: list[str]) -> None:
    (tmp_path / "cache").write_text("a file")
    for _ in range(2):
        assert inspect_folder(list_images(folder)) == expected(folder)
    assert len(inspected) == 8


def test_folders_of_one_name_have_their_own_records(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other/photos"
    for number in range(3):
        other.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((7, 7), np.uint8)).save(other / f"{number}.png")
    for each in (folder, other, folder, other):
        found: dict[str, Any] = inspect_folder(list_images(each))
        assert found == expected(each)
    assert len(list((tmp_path / "cache/inspections").glob("*/about.json"))) == 2


def test_of_several_that_inspect_at_once_one_does(folder: Path, inspected: list[str]) -> None:
    listing = list_images(folder)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(inspect_folder, [listing] * 4))
    assert found == [expected(folder)] * 4
    assert sorted(inspected) == ["0.png", "1.png", "2.png", "3.png"]
