"""Files that lie, leak or wait: one sentence each, in bounded time and memory, through the command's own way in."""

from __future__ import annotations

import gzip
import io
import os
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.commands import ended, start, until
from tests.problems import TINY

from pinoise.data.readers import open_for_training
from pinoise.errors import UserError, damaged
from pinoise.paper.catalogue.texts import parse_stories

Command = Callable[..., Any]
POSIX = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")


def npy(shape: tuple[int, ...], content: bytes, *, descr: str = "<f8") -> bytes:
    """A file of NumPy's whose header promises what we like."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


def npz(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def arrays(**named: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **named)
    return stream.getvalue()


def sparse(layout: bytes, shape: tuple[int, int]) -> bytes:
    place = {"row": [0, 1], "col": [0, 1]} if layout == b"coo" else {"indices": [0, 1], "indptr": [0, 1, 2]}
    return arrays(format=layout, shape=np.array(shape), data=np.array([1.0, 2.0]), **place)


def parquet(text: Any) -> bytes:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0], "t": text}), stream)
    return stream.getvalue()


def not_utf8() -> Any:
    stored = pa.array([b"ab", b"\xff\xfe", b"cd"])
    return pa.StringArray.from_buffers(3, stored.buffers()[1], stored.buffers()[2])


def idx(*shape: int) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)


FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "bytes that are no UTF-8 as labels": (
        "a.npz",
        lambda: arrays(X=np.eye(4), y=np.array([b"a", b"\xff\xfe", b"a", b"b"])),
        r"a\.npz, labels mixes labels of different types, or is no text in UTF-8",
    ),
    "text that is no UTF-8 in Parquet": ("a.parquet", lambda: parquet(not_utf8()), "column 't' is not text in UTF-8"),
    "categories that are no UTF-8": (
        "a.parquet",
        lambda: parquet(not_utf8().dictionary_encode()),
        "column 't' is not text in UTF-8",
    ),
    "IDX of 70 axes": ("a.idx", lambda: idx(*[1] * 70) + b"\0", "a number of axes up to 32"),
    "IDX of any size": ("a.idx", lambda: idx(*[2**32 - 1] * 3), "the array takes"),
    "npy of any size": ("a.npy", lambda: npy((1 << 40, 4), bytes(64)), "mmap length is greater than file size"),
    "npy with too many axes": ("a.npy", lambda: npy((1,) * 70, bytes(8)), "maximum supported dimension"),
    "npy with a deep header": (
        "a.npy",
        lambda: b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 8999 + b"\n",
        "is damaged",
    ),
    "npy of objects": ("a.npy", lambda: npy((2, 2), bytes(64), descr="|O"), "Python objects"),
    "npz whose header promises more": ("a.npz", lambda: npz(X=npy((1 << 30, 40), bytes(64))), "is damaged, cut off"),
    "npz of zeros that would fill the memory": (
        "a.npz",
        lambda: forged(npz(X=npy((1 << 40, 4), bytes(1 << 16))), 1 << 45),
        "promises|takes|damaged",
    ),
    "sparse columns": ("a.npz", lambda: sparse(b"csr", (2, 1 << 40)), r"\(2, 1099511627776\) takes 8796 GB of memory"),
    "sparse negative": ("a.npz", lambda: sparse(b"csr", (2, -5)), "is damaged"),
    "sparse of another kind": ("a.npz", lambda: sparse(b"lil", (2, 5)), "sparse matrix of format lil"),
    "svmlight of 2·10⁹ features": (
        "a.svm",
        lambda: "".join(f"{row % 2} 1:{row} 2000000000:1\n" for row in range(9)).encode(),
        "a matrix of 2000000000 columns takes 256 GB",
    ),
    "one enormous field": ("a.csv", lambda: b"a,b\n1," + b"x" * (70 << 20) + b"\n2,3\n", "a row of more than 32 MB"),
    "a line without end": ("a.csv.gz", lambda: gzip.compress(b"x" * (70 << 20), 1), "its first line has more than"),
    "a name of 5,000 letters": ("x" * 5000 + ".csv", lambda: b"", "cannot be opened: File name too long"),
    "a user who is not there": ("~nosuchuser/x.csv", lambda: b"", "there is no user of that name"),
}


def forged(archive: bytes, size: int) -> bytes:
    """A zip whose first member claims an unpacked size."""
    claimed = struct.pack("<I", min(size, 0xFFFFFFFE))
    place = archive.index(b"PK\x01\x02") + 24
    return archive[:22] + claimed + archive[26:place] + claimed + archive[place + 4 :]


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_gets_one_sentence(case: str, tmp_path: Path) -> None:
    name, content, sentence = FILES[case]
    path = name if name.startswith("~") else str(tmp_path / name)
    if made := content():
        Path(path).write_bytes(made)
    with pytest.raises(UserError, match=sentence) as raised:
        open_for_training(path)
    assert "\n" not in str(raised.value)


def test_wide_sparse_rows_are_refused_before_training(pinoise: Command, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("".join(f"{row % 2} 1:{row} {10**7}:{row + 1}\n" for row in range(20)))
    given = ("--epochs", 1, "--set", "encoder.hidden=4096", "--out", tmp_path / "r")
    assert "the networks need about" in pinoise("train", "--data", tmp_path / "a.svm", *given).sentence
    assert not (tmp_path / "r").exists()


def test_labels_of_bytes_in_utf_8_are_text(tmp_path: Path) -> None:
    labels = np.array(["é".encode(), b"b"] * 5)
    (tmp_path / "a.npz").write_bytes(arrays(X=np.random.default_rng(0).normal(size=(10, 2)), y=labels))
    assert open_for_training(str(tmp_path / "a.npz"))[0].class_names == ("b", "é")


@POSIX
@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.npz", "a.parquet", "a.svm", "a.idx", "a.csv.gz"])
def test_a_pipe_is_refused_and_never_waited_for(name: str, tmp_path: Path, pinoise: Command) -> None:
    os.mkfifo(tmp_path / name)
    said = pinoise("train", "--data", tmp_path / name, "--out", tmp_path / "r").sentence
    assert said.endswith("cannot be opened: it is a pipe, not a regular file.")


@POSIX
def test_sockets_and_devices_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("a.csv")
        for path in ("a.csv", "/dev/zero", "/dev/null"):
            with pytest.raises(UserError, match="cannot be opened"):
                open_for_training(path)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_what_the_system_does_not_let_us_read_is_not_called_damaged(error: OSError) -> None:
    assert str(damaged("a.npz", error)) == f"cannot read a.npz: {error.strerror}."


@POSIX
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="the superuser may read everything")
@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.npz", "a.parquet", "a.svm", "a.idx"])
def test_a_file_without_the_right_to_read_it_is_called_so(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"content")
    (tmp_path / name).chmod(0)
    with pytest.raises(UserError, match="cannot be opened: Permission denied"):
        open_for_training(str(tmp_path / name))


@pytest.mark.parametrize(
    "text",
    [
        "<REUTERS>" * 300_000,
        "<REUTERS " * 300_000,
        "<REUTERS>" + "<TOPICS>" * 300_000 + "</REUTERS>",
        "<REUTERS><TEXT>" + "<TITLE>" * 300_000 + "</TEXT></REUTERS>",
        "<REUTERS><TOPICS>" + "<D>" * 300_000 + "</TOPICS></REUTERS>",
        "<REUTERS><TEXT>" + "<TITLE><BODY>" * 150_000 + "</TEXT></REUTERS>",
    ],
)
def test_stories_whose_marks_are_never_closed_are_read_in_one_pass(text: str) -> None:
    assert len(list(parse_stories(text))) <= 1  # a reader that goes back would take hours


def test_a_table_of_many_columns_is_read_in_one_pass(tmp_path: Path) -> None:
    columns = 6_000
    x = np.random.default_rng(0).normal(size=(4, columns)).round(3)
    words = np.where(np.arange(columns) % 2, x.astype(str), "w")
    lines = [",".join(f"c{number}" for number in range(columns)), *(",".join(row) for row in words)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    data, preparation = open_for_training(str(tmp_path / "a.csv"))
    assert data.shape == (columns,)
    assert preparation.read(tmp_path / "a.csv").shape == (columns,)


@POSIX
def test_an_array_that_is_cut_off_during_training_is_one_sentence(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(4000, 40)))
    training = start("train", "--data", "x.npy", "--out", "r", "--epochs", "100000", *TINY, where=tmp_path)
    until(training, tmp_path / "r/metrics.csv")
    os.truncate(tmp_path / "x.npy", 4096)
    assert "x.npy has changed while it was used: restore it" in ended(training).sentence
