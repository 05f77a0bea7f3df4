"""Where files come from, and downloads against a real server on this machine."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pinoise.errors import UserError
from pinoise.files import cache_folder
from pinoise.paper.catalogue.fetch import DataFile, find, obtain, verify

CONTENT = b"\x1f\x8b" + bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Publisher(BaseHTTPRequestHandler):
    """A server that answers well or badly, by the path asked for."""

    served: list[str]

    def do_GET(self) -> None:
        self.served.append(self.path)
        if self.path == "/gone.gz":
            self.send_error(404)
        elif self.path == "/broken.gz":
            self.send_error(503)
        elif self.path == "/closes.gz":
            self.close_connection = True
        elif self.path == "/moved.gz":
            self.send_response(302)
            self.send_header("Location", "/file.gz")
            self.end_headers()
        elif self.path == "/page.gz":
            self._send(b"<html>log in first</html>")
        elif self.path == "/cut.gz":
            self._send(CONTENT[:1000], length=len(CONTENT))
        else:
            self._send(CONTENT)

    def _send(self, content: bytes, *, length: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length or len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def served() -> list[str]:
    return []


@pytest.fixture
def server(served: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = type("Handler", (Publisher,), {"served": served})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}"
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINOISE_DATA", raising=False)
    monkeypatch.setenv("PINOISE_CACHE", str(tmp_path / "cache"))


def test_a_download_lands_in_the_cache_and_is_not_repeated(server: str, served: list[str], tmp_path: Path) -> None:
    file = DataFile("set.gz", sha256=SHA256, url=f"{server}/file.gz")
    path, sha256 = obtain(file)
    assert sha256 == SHA256
    assert path == tmp_path / "cache" / "set.gz"
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert obtain(file) == (path, SHA256)
    assert served == ["/file.gz"]


@pytest.mark.parametrize(
    ("page", "sha256", "message"),
    [
        ("gone.gz", SHA256, r"cannot download http.*/gone.gz: .*404"),
        ("broken.gz", None, r"cannot download http.*/broken.gz: .*503"),
        ("closes.gz", SHA256, r"cannot be reached, or the connection broke off"),
        ("cut.gz", None, r"broke off before the end"),
        ("cut.gz", SHA256, r"broke off before the end"),
        ("page.gz", None, r"begins with b'<ht', not like such a file"),
        ("file.gz", "0" * 64, rf"has sha256 {SHA256} and should have {'0' * 64}"),
    ],
)
def test_a_bad_download_is_one_sentence_and_leaves_nothing(
    server: str, page: str, sha256: str | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as error:
        obtain(DataFile("set.gz", sha256=sha256, url=f"{server}/{page}"))
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "cache").iterdir())


def test_a_machine_without_network_is_reported_to_get_the_file_by_hand() -> None:
    # Port 9 of this machine: nothing listens there.
    with pytest.raises(UserError, match=r"cannot be reached.*get set.gz by hand and set PINOISE_DATA"):
        obtain(DataFile("set.gz", url="http://127.0.0.1:9/set.gz"))


def test_a_cache_that_cannot_be_written_is_named(server: str, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"cache/set.gz cannot be written .*: set PINOISE_CACHE to a folder"):
        obtain(DataFile("set.gz", url=f"{server}/file.gz"))


def test_an_unknown_checksum_is_recorded_at_the_first_download_and_held_to(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pinoise")
    file = DataFile("set.gz", url=f"{server}/file.gz")
    path, sha256 = obtain(file)
    assert sha256 == SHA256
    assert "no checksum of set.gz is published: recorded sha256 " + SHA256 in caplog.text
    assert (path.parent / "set.gz.sha256").read_text() == f"{SHA256}  set.gz\n"
    assert obtain(file) == (path, SHA256)
    path.write_bytes(CONTENT + b"more")
    with pytest.raises(UserError, match=rf"set.gz is not the file expected.*should be {SHA256}"):
        obtain(file)


def test_the_users_folder_comes_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("mine", "cache"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "set.gz").write_bytes(CONTENT)
    file = DataFile("set.gz", sha256=SHA256)
    assert obtain(file)[0] == tmp_path / "cache" / "set.gz"
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path / "mine"))
    assert obtain(file)[0] == tmp_path / "mine" / "set.gz"


def test_another_wrapping_of_the_file_is_found_and_held_to_its_own_checksum(tmp_path: Path) -> None:
    inner = DataFile("inner.gz", sha256=SHA256)
    file = DataFile("outer.zip", sha256="0" * 64, url="http://127.0.0.1:9/outer.zip", instead=(inner,))
    assert find(file) is None
    path = tmp_path / "cache" / "inner.gz"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert find(file) == (inner, path)
    assert obtain(file) == (path, SHA256)


def test_a_wrong_file_in_the_users_folder_is_named_with_both_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    path = tmp_path / "set.gz"
    path.write_bytes(b"other")
    found = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(UserError, match=rf"{path} is not .* sha256 is {found} and should be {SHA256}"):
        obtain(DataFile("set.gz", sha256=SHA256, url="http://127.0.0.1:9/set.gz"))


def test_a_missing_file_without_address_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DataFile("set.npz", sha256=SHA256)
    with pytest.raises(UserError, match=r"set PINOISE_DATA, which is not set now, to the folder that holds set.npz"):
        obtain(file)
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    with pytest.raises(UserError, match=rf"set PINOISE_DATA, which is {tmp_path} now, to the folder"):
        obtain(file)


def test_nothing_is_downloaded_when_that_is_forbidden(server: str, served: list[str]) -> None:
    with pytest.raises(UserError, match=r"allow its download from http.*file.gz, or set PINOISE_DATA"):
        obtain(DataFile("set.gz", url=f"{server}/file.gz"), download=False)
    assert served == []


def test_the_cache_is_the_platforms_unless_the_environment_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("PINOISE_CACHE", "~/sets")
    assert cache_folder() == Path.home() / "sets"
    monkeypatch.delenv("PINOISE_CACHE")
    assert "pinoise" in cache_folder().parts


def test_a_file_repacked_by_others_is_known_by_a_checksum_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(CONTENT)
    verify(tmp_path / "a", "0" * 64, repacked=("1" * 64, SHA256))
    (tmp_path / "a").write_bytes(CONTENT + b"x")
    with pytest.raises(UserError, match="is not the file expected"):
        verify(tmp_path / "a", "0" * 64, repacked=("1" * 64, SHA256))


def test_an_unpacked_folder_comes_before_its_archive_and_a_file_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(tmp_path))
    file = DataFile("set.tar.gz", sha256="0" * 64, instead=(DataFile("set", folder=True),))
    (tmp_path / "set").write_text("not a folder")
    assert find(file) is None
    (tmp_path / "set.tar.gz").write_bytes(b"")
    assert find(file) == (file, tmp_path / "set.tar.gz")
    (tmp_path / "set").unlink()
    (tmp_path / "set").mkdir()
    assert obtain(file) == (tmp_path / "set", None)
