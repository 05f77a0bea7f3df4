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
from tests.faults.commands import Ended, Fault, Instant, Process, ended, gone, run, start, strike
from tests.faults.events import Events
from tests.faults.families import RUN, TRAININGS, VERBS, write_people
from tests.faults.states import check_same, half_written, newest_step, state
from tests.faults.warm import Warm
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


class Struck(NamedTuple):
    """The kills of a case."""

    kills: int
    while_writing: int
    instants: list[str]


Note = Callable[[str], None]


def _silent(_: str) -> None:
    pass


def draw(rng: np.random.Generator, whole: Whole) -> Instant:
    """Return a random instant of a command: around a change of a file, or at any time."""
    if rng.random() < _AT_A_CHANGE:
        delay = rng.choice([0.0, 0.001, 0.01]) * rng.random()
        return Instant(float(delay), int(rng.integers(1, max(2, whole.changes))))
    return Instant(float(rng.uniform(0, whole.seconds)))


def watched(home: Path, folder: Path, *arguments: object, warm: Warm | None) -> tuple[float, int]:
    """Run the command undisturbed. Return its seconds and the changes of files in a folder."""
    began, changes = time.monotonic(), 0
    with Events(folder) as events:
        process = start(*arguments, where=home, warm=warm)
        while process.poll() is None:
            changes += len(events.read(seconds=0.2))
        seconds = time.monotonic() - began
        done = ended(process)
    if done.code:
        raise Fault(f"the undisturbed command ended with {done.code}: {done.err[-1000:]}")
    return seconds, changes


# ---------------------------------------------------------------- trainings


def whole_training(family: str, home: Path, *, warm: Warm | None = None) -> Whole:
    """Make the data of a family in an empty folder, and train undisturbed."""
    training = TRAININGS[family]
    training.write(home)
    (home / "0").mkdir()
    seconds, changes = watched(home, home / "0", "train", "--out", "0/run", *_flags(family, "0"), warm=warm)
    embedding = embedded(home / "0/run", training.source, home, warm)
    return Whole(home, seconds, changes, state(home / "0/run"), embedding)


def _flags(family: str, name: str) -> tuple[str, ...]:
    training = TRAININGS[family]
    return (*training.flags, *(("--set", f"data.cache={name}/cache") if training.cache else ()))


def embedded(folder: Path, source: tuple[str, ...], home: Path, warm: Warm | None) -> bytes:
    """Return the bytes of the embedding that a real process writes."""
    out = folder.with_name("z.npy")
    run("embed", folder, *source, "--out", out, where=home, warm=warm)
    return out.read_bytes()


def kill_training(
    family: str,
    number: int,
    seed: int,
    whole: Whole,
    *,
    most: int = LENGTH,
    note: Note = _silent,
    warm: Warm | None = None,
) -> Struck:
    """Kill a training, resume it and so on, and compare what it ends with."""
    training, rng, place = TRAININGS[family], generator(family, number, seed), whole.home / str(number + 1)
    place.mkdir()
    folder = place / "run"
    struck, writing, instants, before, left = 0, 0, list[str](), 0, set[str]()
    while struck < most:
        process = _begin(family, place, warm)
        instant = draw(rng, whole)
        ranks = _ranks(rng, training.devices)
        instants.append(f"{instant}{f', ranks {ranks}' if training.devices > 1 else ''}")
        note(instants[-1])
        group = strike(process, instant, place, kill=ranks)
        if not was_killed(process, group, ranks):
            break
        struck += 1
        found = half_written(place)
        writing += bool(found - left)
        left = found
        after = newest_step(folder)
        note(f"killed; the newest checkpoint is of step {after}, half written: {found}")
        if after < before:
            raise Fault(f"the newest checkpoint is of step {after}, and was of step {before}: {instants}")
        before = after
    done = ended(_begin(family, place, warm))
    if done.code:
        raise Fault(f"after {instants}: ended with {done.code}: {done.err[-1000:]}")
    _compare(family, place, whole, instants, warm)
    shutil.rmtree(place)
    return Struck(struck, writing, instants)


def _begin(family: str, place: Path, warm: Warm | None) -> Process:
    """Start a training as a user would: go on with it if it has begun."""
    if (place / "run/config.yaml").exists():
        return start("train", "--resume", f"{place.name}/run", *TRAININGS[family].trust, where=place.parent, warm=warm)
    return start("train", "--out", f"{place.name}/run", *_flags(family, place.name), where=place.parent, warm=warm)


def _ranks(rng: np.random.Generator, devices: int) -> tuple[int, ...]:
    return ((0,), (1,), (0, 1))[int(rng.integers(3))] if devices > 1 else (0,)


def was_killed(process: Process, group: list[int], ranks: tuple[int, ...] = (0,)) -> bool:
    """Wait for all processes of a group, and return whether a kill came before their end.

    Those whose partner was killed end by themselves, with one sentence.
    """
    done = ended(process)
    gone(group[1:], limit=LEFT)
    if "Traceback" in done.err or done.code not in (0, -9, *([2] if ranks == (1,) else [])):
        raise Fault(f"ended with {done.code} when ranks {ranks} of {group} were killed: {done.err[-2000:]}")
    return done.code != 0


def _compare(family: str, place: Path, whole: Whole, instants: list[str], warm: Warm | None) -> None:
    try:
        check_same(whole.state, place / "run", elsewhere=TRAININGS[family].cache)
    except Fault as fault:
        raise Fault(f"after {instants}: {fault}") from None
    if embedded(place / "run", TRAININGS[family].source, whole.home, warm) != whole.embedding:
        raise Fault(f"after {instants}: another embedding")


# ---------------------------------------------------------------- verbs


def whole_verb(family: str, home: Path, *, warm: Warm | None = None) -> Whole:
    """Make a run in an empty folder, and let a verb read it undisturbed."""
    write_people(home)
    run("train", "--out", "run", *RUN, where=home, warm=warm)
    seconds, changes = watched(home, home, *VERBS[family].arguments, warm=warm)
    (home / "user-cache").mkdir(exist_ok=True)
    return Whole(home, seconds, changes, _files(home), (home / VERBS[family].out).read_bytes())


def _files(home: Path) -> dict[str, bytes]:
    """Return what is in a folder, without locks and what a killed process left of files under way."""
    leftover = half_written(home)
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and path.name not in leftover and "user-cache" not in path.parts
    }


def kill_verb(
    family: str,
    number: int,
    seed: int,
    whole: Whole,
    *,
    most: int = LENGTH,
    note: Note = _silent,
    warm: Warm | None = None,
) -> Struck:
    """Kill a verb in every way: its file is the old one, a new one or none, and the run that it read stays."""
    verb, rng = VERBS[family], generator(family, number, seed)
    place = whole.home.with_name(f"{whole.home.name}-{number + 1}")
    shutil.copytree(whole.home, place)
    old = b"old" if number % 2 else None
    (place / verb.out).unlink()
    if old is not None:
        (place / verb.out).write_bytes(old)
    struck, writing, instants, left = 0, 0, list[str](), set[str]()
    while struck < most:
        process, instant = start(*verb.arguments, where=place, warm=warm), draw(rng, whole)
        instants.append(str(instant))
        note(instants[-1])
        if not was_killed(process, strike(process, instant, place)):
            break
        struck += 1
        found = half_written(place)
        writing += bool(found - left)
        left = found
        _check_files(verb.out, place, whole, old, exact=verb.exact)
    done: Ended = run(*verb.arguments, where=place, warm=warm)
    if "Traceback" in done.err:
        raise Fault(done.err)
    _check_files(verb.out, place, whole, None, exact=verb.exact, ended=True)
    shutil.rmtree(place)
    return Struck(struck, writing, instants)


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
