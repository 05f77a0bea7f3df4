"""Pickles of plain containers, text, numbers and arrays of bytes, read without running their code.

A pickle names the functions that rebuild its objects. Here the few names that an array needs lead to stand-ins that
only store their arguments, and every other name is refused.
"""

from __future__ import annotations

import io
import pickle
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pinoise.data.messages import damage_named
from pinoise.errors import UserError


def read_plain_pickle(content: bytes, *, where: str) -> Any:
    """Return what a pickle holds; text of Python 2 is read as latin-1, arrays must be of unsigned bytes.

    >>> read_plain_pickle(pickle.dumps({"data": np.eye(2, dtype=np.uint8), "labels": [3, 4]}), where="a")["data"]
    array([[1, 0],
           [0, 1]], dtype=uint8)
    >>> read_plain_pickle(pickle.dumps(len), where="a.pickle")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: a.pickle was refused: it asks for 'builtins.len', which no file of plain arrays needs.
    """
    with damage_named(where, Exception):  # damaged bytes can raise any error
        return _revealed(_PlainUnpickler(content, where).load())


class _PlainUnpickler(pickle._Unpickler):
    # The one written in Python: damaged bytes can make the one in C ask for any amount of memory.

    def __init__(self, content: bytes, where: str) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._where = where

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name that arrays need."""
        found = _STAND_INS.get((module, name))
        if found is None:
            raise UserError(
                f"{self._where} was refused: it asks for '{module}.{name}', which no file of plain arrays needs."
            )
        return found

    def load_bytearray8(self) -> None:
        """Refuse what no file of this kind has: its memory, of any length, would be taken before its bytes are read."""
        raise ValueError("it holds a bytearray")

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BYTEARRAY8[0]: load_bytearray8}


class _Dtype:
    """Keeps the code of a type, such as ``u1``."""

    def __init__(self, code: str = "", *_: object) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        """Ignore the state: bytes have no order."""


class _Array:
    """Keeps what an array was made of."""

    def __init__(self, *_: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def reveal(self) -> npt.NDArray[np.uint8]:
        """Return the array."""
        _, shape, dtype, column_major, content = self.state
        if not isinstance(dtype, _Dtype) or dtype.code not in ("u1", "|u1"):
            raise ValueError("an array is not of unsigned bytes")
        content = content.encode("latin1") if isinstance(content, str) else bytes(content)
        if len(content) != prod(shape):
            raise ValueError(f"an array of shape {shape} has {len(content)} bytes")
        return np.frombuffer(content, np.uint8).reshape(shape, order="F" if column_major else "C")


def _reconstruct(*_: object) -> _Array:
    return _Array()


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    """Bytes, as Python 3 writes them into a pickle that Python 2 can read."""
    if encoding != "latin1":
        raise ValueError(f"bytes are encoded in {encoding!r}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encoded,
}


def _revealed(value: Any) -> Any:
    """Put arrays in the place of their stand-ins; in files of this kind they are values of a dictionary."""
    if isinstance(value, _Array):
        return value.reveal()
    if isinstance(value, dict):
        return {key: item.reveal() if isinstance(item, _Array) else item for key, item in value.items()}
    return value
