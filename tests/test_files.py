from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pinoise.data.disk import locked
from pinoise.files import replacing


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
@pytest.mark.parametrize(("mask", "rights"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_rights_of_any_new_file(mask: int, rights: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "a") as temporary:
            temporary.write_bytes(b"content")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == rights
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_block_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")

    def break_off() -> None:
        with replacing(tmp_path / "a") as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


HOLDER = """
import sys
from pathlib import Path
from pinoise.data.disk import locked

with locked(Path(sys.argv[1]), waiting="waiting"):
    print("inside", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.processes
def test_one_process_at_a_time_is_let_in_and_one_that_was_killed_keeps_nobody_out(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDER, str(tmp_path / "a")]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    first = start()
    assert first.stdout is not None
    assert first.stdout.readline() == "inside\n"
    second = start()
    assert second.stdout is not None
    said = second.stdout.readline()
    first.kill()
    first.communicate()
    assert (said, second.communicate("done\n", timeout=60)[0]) == ("waiting\n", "inside\n")


def test_a_block_that_fails_lets_the_next_one_in(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "a"):
        _ = 1 / 0
    with locked(tmp_path / "a"):
        pass
