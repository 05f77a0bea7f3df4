from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from pinoise.data.aside import written_aside


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
@pytest.mark.parametrize(("mask", "rights"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_rights_of_any_new_file(mask: int, rights: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with written_aside(tmp_path / "a") as stream:
            stream.write(b"content")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == rights
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_block_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")

    def break_off() -> None:
        with written_aside(tmp_path / "a") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]
