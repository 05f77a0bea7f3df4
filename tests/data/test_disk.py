"""The one store of what is made from files once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinoise.data.disk import kept, peek, place_of
from pinoise.data.formats.opened import states_of
from pinoise.errors import UserError
from pinoise.files import WriteError, cache_folder

spawn = multiprocessing.get_context("spawn")


class Maker:
    """Writes one file, and counts how often it is asked to."""

    def __init__(self, text: str = "content") -> None:
        self.text, self.calls = text, 0

    def __call__(self, folder: Path) -> dict[str, Any]:
        self.calls += 1
        (folder / "a.txt").write_text(self.text)
        return {"letters": len(self.text), "range": (0, float("nan"))}


def make_slowly(place: Path) -> None:
    """Make what belongs to a place, and note beside it that it was made."""

    def make(folder: Path) -> dict[str, Any]:
        with (place.parent / "made.log").open("a") as log:
            log.write("made\n")
        time.sleep(0.5)
        return Maker()(folder)

    kept(place, "key", make)


def die_halfway(place: Path) -> None:
    """Be killed while a file is written."""

    def make(folder: Path) -> dict[str, Any]:
        (folder / "a.txt").write_text("con")
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    kept(place, "key", make)


def others(place: Path) -> list[str]:
    """What lies beside a place, but for its lock."""
    return sorted(path.name for path in place.parent.iterdir() if path.name not in (place.name, f"{place.name}.lock"))


def test_what_is_kept_is_made_once_and_given_back_as_json(tmp_path: Path) -> None:
    make, place = Maker(), tmp_path / "not/there/toy"
    assert peek(place, "key") is None
    first = kept(place, "key", make)
    assert first.folder == place
    assert first.about == {"letters": 7, "range": [0, None]}
    assert kept(place, "key", make) == peek(place, "key") == first
    assert make.calls == 1
    assert others(place) == []


def test_another_key_makes_it_again_in_the_same_place(tmp_path: Path) -> None:
    place = tmp_path / "toy"
    kept(place, ["v", 1], Maker("old"))
    assert peek(place, ["v", 2]) is None
    assert (kept(place, ["v", 2], Maker("new")).folder / "a.txt").read_text() == "new"
    assert peek(place, ["v", 1]) is None
    assert others(place) == []


def write_more(place: Path) -> None:
    with (place / "a.txt").open("a") as file:
        file.write("!")


def write_as_much(place: Path) -> None:
    (place / "a.txt").write_text("CONTENT")


def remove_a_file(place: Path) -> None:
    (place / "a.txt").unlink()


def cut_the_record(place: Path) -> None:
    record = place / "about.json"
    record.write_text(record.read_text()[:-5])


def write_another_record(place: Path) -> None:
    (place / "about.json").write_text('["key", {"files": []}]')


def nest_deeply(place: Path) -> None:
    (place / "about.json").write_text("[" * 100_000)


@pytest.mark.parametrize(
    "change", [write_more, write_as_much, remove_a_file, cut_the_record, write_another_record, nest_deeply]
)
def test_what_somebody_wrote_to_is_made_again(change: Callable[[Path], None], tmp_path: Path) -> None:
    make, place = Maker(), tmp_path / "toy"
    kept(place, "key", make)
    change(place)
    assert peek(place, "key") is None
    again = kept(place, "key", make)
    assert make.calls == 2
    assert (again.folder / "a.txt").read_text() == "content"
    assert kept(place, "key", make) == again
    assert make.calls == 2


@pytest.mark.parametrize("error", [UserError("no image"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_maker_that_fails_leaves_nothing_and_what_was_there_stays(error: BaseException, tmp_path: Path) -> None:
    place = tmp_path / "toy"

    def fail(folder: Path) -> dict[str, Any]:
        (folder / "a.txt").write_text("con")
        raise error

    for before in (None, kept(place, "old key", Maker())):
        with pytest.raises(BaseException, match=r"no image|^$|toy|No space left") as raised:
            kept(place, "key", fail)
        assert raised.type is (WriteError if isinstance(error, OSError) else type(error))
        assert peek(place, "key") is None
        assert others(place) == []
        if before is not None:
            assert peek(place, "old key") == before


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_what_a_killed_process_left_is_never_taken_and_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "toy"
    process = spawn.Process(target=die_halfway, args=(place,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert len(others(place)) == 1
    assert peek(place, "key") is None
    assert (kept(place, "key", Maker()).folder / "a.txt").read_text() == "content"
    assert others(place) == []


@pytest.mark.processes
def test_two_processes_make_it_once(tmp_path: Path) -> None:
    place = tmp_path / "toy"
    processes = [spawn.Process(target=make_slowly, args=(place,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert (tmp_path / "made.log").read_text() == "made\n"
    assert others(place) == ["made.log"]
    assert peek(place, "key") is not None


@pytest.mark.parametrize("place", ["file/toy", "file/deep/toy"])
def test_a_place_that_cannot_be_written_is_one_sentence(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sentence = r"^\S+ cannot be written \(.*\): make room, or choose another folder with PINOISE_CACHE\.$"
    with pytest.raises(WriteError, match=sentence):
        kept(tmp_path / place, "key", Maker())


def test_a_place_has_a_name_for_people_and_one_for_all_that_it_depends_on(tmp_path: Path) -> None:
    place = place_of("rows", "people.csv", "/home/a/people.csv", {"rows": 3})
    assert place.parent == cache_folder() / "rows"
    assert place.name.startswith("people.csv-")
    assert place == place_of("rows", "people.csv", "/home/a/people.csv", {"rows": 3})
    assert place != place_of("rows", "people.csv", "/home/b/people.csv", {"rows": 3})
    assert place_of("rows", "x" * 500, folder=tmp_path).parent == tmp_path
    assert len(place_of("rows", "x" * 500).name) < 60
    assert place_of("rows", "").name.startswith("rows-")


def test_a_state_changes_with_the_file_and_an_absent_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1")
    before = states_of([path])
    assert before == states_of([path])
    assert before[0][0] == str(path.resolve())
    os.utime(path, ns=(7, 7))
    assert states_of([path]) != before
    with pytest.raises(UserError, match=r"cannot read .*b\.csv: No such file or directory"):
        states_of([path, tmp_path / "b.csv"])
