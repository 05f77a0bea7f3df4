"""What came of a case: one sentence, a right result, or a failure; never by what the case says about itself."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import re
import signal
import stat
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

from tests.hostile.case import MARKER, Case, Outcome

LONGEST_SENTENCE = 2000  # characters
PROGRESS = re.compile(r"(note|warning): |epoch \d+ · |.* · seed \d+$")
LOCKS = ("*.lock", ".lock", "*/.lock")  # a lock file may stay; it is empty or names its process
DIVERGED = "the loss became nan"
EXHAUSTED = "this needs more memory"
LARGE = 1 << 24  # bytes; of larger files only the size and the time are compared


class Ended(NamedTuple):
    """How the process of a case ended: its exit code, negative for a signal, or None if it was stopped as a hang."""

    code: int | None
    out: str
    err: str
    raised: dict[str, Any] | None  # by a Python call: its types, message and whether it was wrong


def snapshot(folder: Path) -> dict[str, str]:
    """Return what every path in a folder is: its kind and rights, its content by checksum, or where it points."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        kind = f"{stat.S_IFMT(state.st_mode):o}"
        if path.is_symlink():
            content = str(path.readlink())
        elif stat.S_ISREG(state.st_mode):
            content = _content(path, state.st_size, state.st_mtime_ns)
        else:
            content = ""
        found[str(path.relative_to(folder))] = f"{kind}:{stat.S_IMODE(state.st_mode):o}:{content}"
    return found


def _content(path: Path, size: int, time: int) -> str:
    if size > LARGE:
        return f"{size}:{time}"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except PermissionError:
        return f"{size}:{time}"


def changed(before: dict[str, str], after: dict[str, str], allowed: tuple[str, ...]) -> list[str]:
    """Return the paths that were made, changed or removed without being allowed to.

    >>> changed({"a": "1", "b": "1"}, {"a": "2", "c": "1"}, ("c",))
    ['a', 'b']
    """
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return [path for path in paths if not any(fnmatch.fnmatch(path, pattern) for pattern in (*allowed, *LOCKS))]


def judge(case: Case, ended: Ended, before: dict[str, str], folder: Path, reference: Path) -> Outcome:
    """Return what came of a case whose process has ended; ``folder`` is the case's own."""
    if (folder / MARKER).exists() or list(folder.rglob(MARKER)):
        return Outcome("failure", "payload executed", "the marker file is there")
    if ended.code is None:
        return Outcome("failure", "hang", f"no end within {case.limit:.0f} s of the processor")
    if ended.code < 0:
        return Outcome("failure", "signal", f"ended by {signal.Signals(-ended.code).name}: {_last(ended.err)}")
    outcome = _of_call(case, ended) if callable(case.call) else _of_command(case, ended, folder, reference)
    if outcome.kind == "failure":
        return outcome
    if outcome.detail.startswith(EXHAUSTED) and not case.hungry:
        return Outcome("failure", "memory", outcome.detail)
    diverged = outcome.detail.startswith(DIVERGED)  # after training began: its folder stays
    allowed = case.writes if outcome.kind == "right" or diverged else ()
    if wrong := changed(before, snapshot(folder), allowed):
        return Outcome("failure", "files changed", f"{', '.join(wrong[:5])} after: {outcome.detail}")
    if case.expect not in ("either", outcome.kind):
        cause = "accepted" if case.expect == "sentence" else "refused"
        return Outcome("failure", cause, outcome.detail)
    return outcome


def _of_command(case: Case, ended: Ended, folder: Path, reference: Path) -> Outcome:
    if "Traceback (most recent call last)" in ended.err:
        return Outcome("failure", "traceback", blame(ended.err))
    if ended.code == 0:
        with contextlib.chdir(folder):
            try:
                wrong = case.right(reference)
            except Exception as error:
                wrong = f"the check itself failed: {type(error).__name__}: {error}"
        return Outcome("failure", "wrong result", wrong) if wrong else Outcome("right", "", _last(ended.out))
    if ended.code != 2:
        return Outcome("failure", "exit code", f"{ended.code}: {_last(ended.err)}")
    lines = [line for line in re.split(r"[\n\r]", ended.err) if line and not PROGRESS.match(line)]
    if not lines:
        return Outcome("failure", "mute", "exit code 2 without a sentence")
    if len(lines) > 1 or not lines[0].startswith("pinoise: "):
        return Outcome("failure", "not one sentence", " | ".join(lines[:4])[:300])
    return _of_sentence(lines[0].removeprefix("pinoise: "), out=ended.out)


def _of_call(case: Case, ended: Ended) -> Outcome:
    if ended.raised is None:
        if ended.code != 0:
            return Outcome("failure", "exit code", f"{ended.code}: {_last(ended.err)}")
        return Outcome("right", "", "")
    if ended.raised["wrong"]:
        return Outcome("failure", "wrong result", ended.raised["message"])
    if not set(case.refusals) & set(ended.raised["types"]):
        return Outcome("failure", "traceback", blame(ended.raised["traceback"]))
    return Outcome("sentence", "", ended.raised["message"].partition("\n")[0][:LONGEST_SENTENCE])


def _of_sentence(sentence: str, *, out: str) -> Outcome:
    """Check the form of a sentence on a terminal."""
    if not sentence.strip():
        return Outcome("failure", "mute", "the sentence is empty")
    if len(sentence) > LONGEST_SENTENCE:
        return Outcome("failure", "endless sentence", f"{len(sentence)} characters: {sentence[:100]}")
    if any(unicodedata.category(letter) == "Cc" for letter in sentence):
        return Outcome("failure", "control characters", repr(sentence)[:300])
    if out:
        return Outcome("failure", "output before a refusal", out[:100])
    return Outcome("sentence", "", sentence)


def blame(text: str) -> str:
    """Return the error of a traceback and the last line of the package in it, for grouping.

    >>> blame('Traceback (most recent call last):\\n  File "/x/src/pinoise/files.py", line 9, in f\\nKeyError: 1')
    'KeyError: 1 (files.py:9 in f)'
    """
    places = re.findall(r'File ".*?/src/pinoise/(.+?)", line (\d+), in (\w+)', text)
    where = "{}:{} in {}".format(*places[-1]) if places else "outside the package"
    return f"{_last(text)[:200]} ({where})"


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def read_ended(folder: Path, code: int | None) -> Ended:
    """Read what the process of a case left beside the case's folder."""

    def text(name: str) -> str:
        path = folder / name
        return path.read_bytes()[: 1 << 20].decode(errors="replace") if path.exists() else ""

    raised = json.loads((folder / "raised.json").read_text()) if (folder / "raised.json").exists() else None
    return Ended(code, text("stdout"), text("stderr"), raised)
