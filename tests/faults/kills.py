"""Kill -9 at random instants, again and again, and what must be true after each and at the end.

A case is a chain: a command is killed, started again as a user would, killed again, and at last runs to its end. After
every kill the newest checkpoint is intact and no older than it was. At the end all is as if nothing had happened.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.faults.commands import Fault, Instant, Process, changes, ended, gone, run, start, strike
from tests.faults.events import Events
from tests.faults.families import RUN, TRAININGS, VERBS, write_table
from tests.faults.states import check_same, half_written, newest_step, state
from tests.hostile.case import generator

LENGTH = 6  # kills in a chain
LEFT = 40.0  # seconds within which the other processes of a group end
_AT_A_CHANGE = 0.6  # the share of kills that wait for a change of a file


class Whole(NamedTuple):
    """What an uninterrupted command did."""

    home: Path
    seconds: float
    changes: int
    state: dict[str, Any]
    embedding: bytes  # or what a verb writes
    steps: int = 1  # of a training


class Struck(NamedTuple):
    """The kills of a case."""

    kills: int
    while_writing: int
    instants: list[str]


Note = Callable[[str], None]


def _silent(_: str) -> None:
    pass


class Case(NamedTuple):
    """A chain of kills: which it is, and how it is run.

    Args:
        family: what is killed.
        number: of the case in its family.
        seed: of all cases. With family and number it gives the instants.
        whole: what the undisturbed command did.
        most: the kills after which the command may run to its end.
        at_a_change: the share of kills that wait for a change of a file.
        note: told what happens.
        warm: whether the commands are forks.
    """

    family: str
    number: int
    seed: int
    whole: Whole
    most: int = LENGTH
    at_a_change: float = _AT_A_CHANGE
    note: Note = _silent
    warm: bool = False

    def strike(self, begin: Callable[[], Process], place: Path, check: Callable[[], float], *, devices: int) -> Struck:
        """Start a command and kill it, again and again, until one ends before its kill or there are enough.

        Args:
            begin: starts the command, or goes on with it.
            place: the folder that it writes in.
            check: refuses what a kill may not leave, and returns the share of the work that is left.
            devices: the processes that work together.
        """
        rng, instants = generator(self.family, self.number, self.seed), list[str]()
        kills, writing, left = 0, 0, 1.0
        while kills < self.most:
            instant = draw(rng, self.whole, left=left, at_a_change=self.at_a_change)
            before, victims = half_written(place), _victims(rng, devices)
            instants.append(f"{instant}{f', processes {victims}' if devices > 1 else ''}")
            self.note(instants[-1])
            with Events(place) as events:  # as of the undisturbed command, from its start
                process = begin()
                group = strike(process, instant, events, kill=victims)
            if not was_killed(process, group, victims):
                break
            kills += 1
            found = half_written(place) - before
            writing += bool(found)
            self.note(f"killed; half written: {sorted(name for name, _ in found)}")
            try:
                left = check()
            except Fault as fault:
                raise Fault(f"after {instants}: {fault}") from None
        return Struck(kills, writing, instants)


def draw(rng: np.random.Generator, whole: Whole, *, left: float = 1.0, at_a_change: float = _AT_A_CHANGE) -> Instant:
    """Return a random instant of a command: around a change of a file, or at any time.

    Args:
        rng: draws it.
        whole: what the command did undisturbed.
        left: the share of the work that the command still has to do.
        at_a_change: the share of instants that wait for a change of a file.
    """
    if rng.random() < at_a_change:
        delay = rng.choice([0.0, 0.001, 0.01]) * rng.random()
        return Instant(float(delay), int(rng.integers(1, max(2, round(left * whole.changes)))))
    return Instant(float(rng.uniform(0, left * whole.seconds)))


def watched(home: Path, folder: Path, *arguments: object, warm: bool) -> tuple[float, int]:
    """Run the command undisturbed. Return its seconds and the changes of files in a folder."""
    began, seen = time.monotonic(), 0
    with Events(folder) as events:
        process = start(*arguments, where=home, warm=warm)
        while process.poll() is None:
            seen += changes(events, seconds=0.01)  # so that the end is not noticed late
        seconds = time.monotonic() - began
        done = ended(process)
    if done.code:
        raise Fault(f"the undisturbed command ended with {done.code}: {done.err[-1000:]}")
    return seconds, seen


# ---------------------------------------------------------------- trainings


def whole_training(family: str, home: Path, *, warm: bool = False) -> Whole:
    """Make the data of a family in an empty folder, and train undisturbed."""
    training = TRAININGS[family]
    training.write(home)
    (home / "0").mkdir()
    seconds, seen = watched(home, home / "0", "train", "--out", "0/run", *TRAININGS[family].flags, warm=warm)
    embedding = embedded(home / "0/run", training.source, home, warm)
    return Whole(home, seconds, seen, state(home / "0/run"), embedding, newest_step(home / "0/run"))


def embedded(folder: Path, source: tuple[str, ...], home: Path, warm: bool) -> bytes:
    """Return the bytes of the embedding that a real process writes."""
    out = folder.with_name("z.npy")
    run("embed", folder, *source, "--out", out, where=home, warm=warm)
    return out.read_bytes()


def kill_training(case: Case) -> Struck:
    """Kill a training, resume it and so on, and compare what it ends with."""
    family, whole, place, reached = case.family, case.whole, case.whole.home / str(case.number + 1), [0]
    place.mkdir()
    shutil.rmtree(whole.home / "user-cache/rows", ignore_errors=True)  # so that a kill may come while they are encoded

    def check() -> float:
        reached.append(newest_step(place / "run"))
        case.note(f"the newest checkpoint is of step {reached[-1]}")
        if reached[-1] < reached[-2]:
            raise Fault(f"the newest checkpoint is of step {reached[-1]}, and was of step {reached[-2]}")
        return 1 - reached[-1] / whole.steps

    def begin() -> Process:
        return _begin(family, place, case.warm)

    struck = case.strike(begin, place, check, devices=TRAININGS[family].devices)
    done = ended(begin())
    if done.code:
        raise Fault(f"after {struck.instants}: ended with {done.code}: {done.err[-1000:]}")
    _compare(family, place, whole, struck.instants, case.warm)
    shutil.rmtree(place)
    return struck


def _begin(family: str, place: Path, warm: bool) -> Process:
    """Start a training as a user would: go on with it if it has begun."""
    if (place / "run/config.yaml").exists():
        return start("train", "--resume", f"{place.name}/run", where=place.parent, warm=warm)
    return start("train", "--out", f"{place.name}/run", *TRAININGS[family].flags, where=place.parent, warm=warm)


def _victims(rng: np.random.Generator, devices: int) -> tuple[int, ...]:
    """Return whom to kill: 0 is the command, and 1 and 2 are the processes that it has started."""
    return ((0,), (1,), (2,), (1, 2))[int(rng.integers(4))] if devices > 1 else (0,)


def was_killed(process: Process, group: list[int], victims: tuple[int, ...] = (0,)) -> bool:
    """Wait for the command and what it has started, and return whether a kill came before their end.

    Those whose partner was killed end by themselves, with one sentence.
    """
    done = ended(process)
    gone(group[1:], limit=LEFT)
    if "Traceback" in done.err or done.code not in (0, -9 if 0 in victims or len(group) == 1 else 2):
        raise Fault(f"ended with {done.code} when {victims} of {group} were killed: {done.err[-2000:]}")
    return done.code != 0


def _compare(family: str, place: Path, whole: Whole, instants: list[str], warm: bool) -> None:
    try:
        check_same(whole.state, place / "run")
    except Fault as fault:
        raise Fault(f"after {instants}: {fault}") from None
    if embedded(place / "run", TRAININGS[family].source, whole.home, warm) != whole.embedding:
        raise Fault(f"after {instants}: another embedding")


# ---------------------------------------------------------------- verbs


def whole_verb(family: str, home: Path, *, warm: bool = False) -> Whole:
    """Make a run in an empty folder, and let a verb read it undisturbed."""
    write_table(home)
    run("train", "--out", "run", *RUN, where=home, warm=warm)
    seconds, seen = watched(home, home, *VERBS[family].arguments, warm=warm)
    (home / "user-cache").mkdir(exist_ok=True)
    return Whole(home, seconds, seen, _files(home), (home / VERBS[family].out).read_bytes())


def _files(home: Path) -> dict[str, bytes]:
    """Return what is in a folder, without locks and what a killed process left of files under way."""
    leftover = {name for name, _ in half_written(home)}
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and str(path.relative_to(home)) not in leftover and "user-cache" not in path.parts
    }


def kill_verb(case: Case) -> Struck:
    """Kill a verb in every way: its file is the old one, a new one or none, and the run that it read stays."""
    verb, whole = VERBS[case.family], case.whole
    place = whole.home.with_name(f"{whole.home.name}-{case.number + 1}")
    shutil.copytree(whole.home, place)
    old = b"old" if case.number % 2 else None
    (place / verb.out).unlink()
    if old is not None:
        (place / verb.out).write_bytes(old)

    def check() -> float:
        _check_files(verb.out, place, whole, old, exact=verb.exact)
        return 1.0  # the next one does all of it again

    struck = case.strike(lambda: start(*verb.arguments, where=place, warm=case.warm), place, check, devices=1)
    done = run(*verb.arguments, where=place, warm=case.warm)
    if "Traceback" in done.err:
        raise Fault(done.err)
    _check_files(verb.out, place, whole, None, exact=verb.exact, ended=True)
    shutil.rmtree(place)
    return struck


def _check_files(out: str, place: Path, whole: Whole, old: bytes | None, *, exact: bool, ended: bool = False) -> None:
    found = _files(place)
    written = found.pop(out, None)
    sound = written == whole.embedding or (not exact and written is not None and len(written) > 1000)
    if not sound and (ended or written != old):
        raise Fault(f"{out} is neither the old file nor the new one, but {str(written)[:50]}")
    for name, content in whole.state.items():
        beside = Path(name).parent == Path(out).parent and not name.startswith("run/")
        if name != out and not (beside and not exact) and found.get(name) != content:
            raise Fault(f"{name} has changed while {out} was written")
