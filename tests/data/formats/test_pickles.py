from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinoise.data.formats.pickles import read_plain_pickle
from pinoise.errors import UserError

PLAIN = {"data": np.arange(12, dtype=np.uint8).reshape(3, 4), "labels": [3, 1, 2], "batch_label": "one", "n": 7}


class Evil:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.answer = (function, arguments)

    def __reduce__(self) -> Any:
        return self.answer


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_containers_text_numbers_and_arrays_of_bytes_come_back(protocol: int, order: Any) -> None:
    content = dict(PLAIN, data=np.array(PLAIN["data"], order=order))
    found = read_plain_pickle(pickle.dumps(content, protocol=protocol), where="a")
    np.testing.assert_array_equal(found["data"], content["data"])
    assert {key: found[key] for key in ("labels", "batch_label", "n")} == {
        key: content[key] for key in ("labels", "batch_label", "n")
    }


def python2_pickle() -> bytes:
    """What Python 2 wrote, opcode by opcode: text and the content of arrays are byte strings."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2
    dtype += b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    array += b"(K\x01K\x02K\x03\x86" + dtype + b"\x89" + text(bytes([0, 1, 2, 253, 254, 255])) + b"tb"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + b"](K\x04K\x05eu."


def test_a_pickle_of_python_2_is_read() -> None:
    pickletools.dis(python2_pickle(), out=io.StringIO())  # raises an error unless it is well formed
    found = read_plain_pickle(python2_pickle(), where="a")
    assert found["data"].tolist() == [[0, 1, 2], [253, 254, 255]]
    assert found["labels"] == [4, 5]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Evil(os.system, "echo no"), r"'(posix|nt)\.system'"),
        (Evil(eval, "1"), r"'builtins\.eval'"),
        ({"data": Evil(getattr, "a", "b")}, r"'builtins\.getattr'"),
        (OrderedDict(), r"'collections\.OrderedDict'"),
        (np.float64(1.0), r"'numpy\.(_core|core)\.multiarray\.scalar'"),
        (Path("a"), r"'pathlib.*Path'"),
    ],
)
def test_any_other_name_is_refused_and_reported(value: Any, name: str) -> None:
    with pytest.raises(UserError, match=f"batch was refused: it asks for {name}"):
        read_plain_pickle(pickle.dumps(value, protocol=3), where="batch")


def test_refused_code_is_not_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    with pytest.raises(UserError):
        read_plain_pickle(pickle.dumps(Evil(os.mkdir, str(target))), where="a")
    assert not target.exists()


@pytest.mark.parametrize("array", [np.zeros(3), np.array(["a", {}], dtype=object), np.zeros(3, dtype=np.int8)])
def test_arrays_of_other_types_are_refused(array: Any) -> None:
    with pytest.raises(UserError, match="an array is not of unsigned bytes"):
        read_plain_pickle(pickle.dumps({"data": array}, protocol=2), where="a")


def test_an_array_whose_bytes_do_not_fill_its_shape_is_refused() -> None:
    content = python2_pickle().replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86")
    with pytest.raises(UserError, match=r"an array of shape \(2, 4\) has 6 bytes"):
        read_plain_pickle(content, where="a")


def test_a_bytearray_that_claims_any_length_takes_no_memory() -> None:
    content = pickle.PROTO + b"\x05" + pickle.BYTEARRAY8 + (2**62).to_bytes(8, "little") + b"."
    with pytest.raises(UserError, match="it holds a bytearray"):
        read_plain_pickle(content, where="a")


@settings(max_examples=200, deadline=None)
@given(cut=st.integers(0, 400), at=st.integers(0, 400), value=st.integers(0, 255))
def test_spoiled_bytes_end_in_a_sentence_or_in_plain_values(cut: int, at: int, value: int) -> None:
    content = bytearray(pickle.dumps(PLAIN, protocol=2))
    with pytest.raises(UserError):
        read_plain_pickle(bytes(content[: min(cut, len(content) - 1)]), where="a")
    content[at % len(content)] = value
    with contextlib.suppress(UserError):
        read_plain_pickle(bytes(content), where="a")
