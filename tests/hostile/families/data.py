"""Bad data: files of every format, damaged, forged, of the wrong kind, and with values that no model can use."""

from __future__ import annotations

import os
import pickle
import shutil
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.hostile.case import Case, Check, Expect, Generator
from tests.hostile.mutations import BYTES, Mutation
from tests.hostile.oracles import embeds, trains
from tests.hostile.reference import TINY, Bomb, numbers, write_images, write_table

Write = Callable[[Path, Generator], object]  # writes a file or folder at a path

EMBED_RUN = {
    ".csv": "table",
    ".parquet": "table",
    ".npy": "array",
    ".npz": "array",
    ".svm": "lines",
    "": "images_run",
}


@dataclass(frozen=True)
class Bad:
    """A kind of bad file."""

    label: str
    suffix: str
    write: Write
    expect: Expect = "either"
    plain: bool = True  # whether an independent reader should agree with a result
    clean: bool = False  # whether a result must be that of the sound file


def damaged(suffix: str, file: str, mutation: Mutation) -> Bad:
    """Return a sound file with damaged bytes."""
    exact = suffix in ("", ".npz")  # whose checksums find all damage

    def write(path: Path, rng: Generator) -> None:
        sound = Path(os.environ["HOSTILE_REFERENCE"], file)
        if sound.is_dir():
            shutil.copytree(sound, path)
            path, sound = path / "05.png", sound / "05.png"
        path.write_bytes(mutation(sound.read_bytes(), rng))

    return Bad(f"{mutation.__name__} of {file}", suffix, write, clean=exact)


def text(label: str, content: str | bytes, suffix: str = ".csv", **more: Any) -> Bad:
    """Return a file with this content."""
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return Bad(label, suffix, lambda path, rng: path.write_bytes(raw), **more)


def cell(value: str, expect: Expect = "either", *, plain: bool = True) -> Bad:
    """Return a table with one odd cell, in a random place."""

    def write(path: Path, rng: Generator) -> None:
        rows = [[repr(float(item)) for item in row] for row in numbers()]
        rows[int(rng.integers(1, len(rows)))][int(rng.integers(3))] = value
        path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")

    return Bad(f"a cell {value[:20]!r}", ".csv", write, expect, plain=plain)


def array(
    label: str, make: Callable[[Any, Generator], Any], expect: Expect = "either", suffix: str = ".npy", **more: Any
) -> Bad:
    """Return an array file that is made from the sound array."""

    def write(path: Path, rng: Generator) -> None:
        made = make(numbers(), rng)
        with path.open("wb") as stream:
            if suffix == ".npz":
                np.savez(stream, **made)
            else:
                np.save(stream, made, allow_pickle=True)

    return Bad(label, suffix, write, expect, **more)


def with_value(value: float) -> list[Bad]:
    """Return an array and an archive with one value in a random place."""

    def put(x: Any, rng: Generator) -> Any:
        x[int(rng.integers(len(x))), int(rng.integers(3))] = value
        return x

    what, plain = f"one value {value:g}", not np.isnan(value)
    expect: Expect = "sentence" if plain else "either"  # a missing number is filled, but not by the independent reader
    return [
        array(f"{what} in an array", put, expect, plain=plain),
        array(f"{what} in an archive", lambda x, rng: {"X": put(x, rng)}, expect, ".npz", plain=plain),
    ]


def tree(label: str, add: Write, expect: Expect = "either", **more: Any) -> Bad:
    """Return the folder of sound images with something added."""

    def write(path: Path, rng: Generator) -> None:
        write_images(path)
        add(path, rng)

    return Bad(f"among images: {label}", "", write, expect, **more)


def image(name: str, **options: Any) -> Callable[[Path, Generator], None]:
    """Return a writer of one more image of some mode."""

    def add(path: Path, rng: Generator) -> None:
        from PIL import Image

        Image.new(options.pop("mode", "L"), options.pop("size", (6, 6))).save(path / name, **options)

    return add


def png_bomb(path: Path, rng: Generator) -> None:
    """Write a PNG of 30,000 × 30,000 pixels in some hundred kilobytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    side = 30_000
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + side)) for _ in range(side)) + packer.flush()
    body = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) + chunk(b"IDAT", rows)
    (path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b""))


def link_loop(path: Path, rng: Generator) -> None:
    """Make a folder that contains itself."""
    (path / "again").symlink_to(path.resolve())


def _folder_of_text(path: Path, rng: Generator) -> None:
    path.mkdir()
    (path / "a.txt").write_text("a")


def parquet_of(label: str, make: Callable[[Any], Any], expect: Expect = "either") -> Bad:
    """Return a Parquet file of a table that is made with Arrow."""

    def write(path: Path, rng: Generator) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        pyarrow.parquet.write_table(make(pa), path)

    return Bad(f"Parquet with {label}", ".parquet", write, expect, plain=False)


def _bad_utf8(pa: Any) -> Any:
    raw = pa.array([b"\xff\xfe%d" % (row % 3) for row in range(24)])
    words = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    return pa.table({"a": numbers()[:, 0], "b": words, "c": numbers()[:, 2]})


def _as_type(kind: str, x: Any, rng: Generator) -> Any:
    return np.clip(np.abs(x), 0, 100).astype(kind)


ROWS_OF_TEXT = "".join(f"{a},{b},{c}\n" for a, b, c in numbers().tolist())
TABLE = "a,b,c\n" + ROWS_OF_TEXT
LINES = "".join(f"1 1:{a} 2:{b} 3:{c}\n" for a, b, c in numbers().tolist())
TEXTS = [
    text("UTF-16", TABLE.encode("utf-16"), expect="sentence"),
    text("Latin-1 in the header", b"\xe4,b,c\n" + ROWS_OF_TEXT.encode(), expect="sentence"),
    text("another order of columns", "c,a,b\n" + "".join(f"{c},{a},{b}\n" for a, b, c in numbers().tolist())),
    text("a column too few", "a,b\n1,2\n3,4\n", plain=False),
    text("two columns of one name", TABLE.replace("a,b,c", "a,a,c"), plain=False),
    text("a quote inside a cell", TABLE + '1,2"3,4\n', plain=False),
    text("only a header", "a,b,c\n", expect="sentence"),
    text("nothing", "", expect="sentence"),
    text("only spaces", " \n \n", expect="sentence"),
    text("a NUL in a cell", TABLE + "1,2\0,3\n", plain=False),
    text("escape codes in the header", TABLE.replace("a", "\x1b[2J", 1), plain=False),
    text("a line break in the header", TABLE.replace("a,", '"a\nb",', 1), plain=False),
    text("a formula", TABLE.replace("a", "=cmd|' /C calc'!A0", 1), plain=False),
    text("a million commas", "a" + "," * 100_000 + "\n" + "1" + "," * 100_000 + "\n", plain=False),
    text("a cell of a megabyte", TABLE + "9" * 1_000_000 + ",1,1\n", expect="sentence"),
    text("a name of a megabyte", "a" * 1_000_000 + ",b,c\n" + ROWS_OF_TEXT, plain=False),
    text("constant columns", "a,b,c\n" + "1,2,3\n" * 20),
    text("one row", "a,b,c\n1,2,3\n"),
    text("bytes of every value", bytes(range(256)), expect="sentence"),
    text("HTML", "<html><body>not found</body></html>", expect="sentence"),
    text("a pickle", pickle.dumps(Bomb()), expect="sentence"),
    text("a zip", b"PK\x03\x04" + bytes(100), expect="sentence"),
]
CELLS = [
    *(cell(word, "sentence") for word in ("inf", "-inf", "1e400", "1e200", "-1e300", "hello", "0x10", "1e155")),
    *(cell(word, "sentence") for word in ("9" * 5000, "1,5", "2020-01-01", "12:30", "=1+1", "\u0661\u0662", "true")),
    *(cell(word, plain=False) for word in ("", "nan", "NaN", "NA", "null", "1_000", "\uff11", "TRUE", "\xa01", "- 1")),
    *(cell(word) for word in (" 1 ", "+1", "1e5", "-0.0", "1e-320", "0" * 3000 + "1", "1." + "3" * 3000, "1E+2")),
]
ARRAYS = [
    *(
        array(f"of {kind}", partial(_as_type, kind))
        for kind in ("?", "i1", "u2", "i4", "u8", ">f8", ">i2", "f2", "f4", "g")
    ),
    array("of complex numbers", lambda x, rng: x + 1j, "sentence"),
    array("of times", lambda x, rng: x.astype("M8[s]"), "sentence"),
    array("of durations", lambda x, rng: x.astype("m8[s]"), "sentence"),
    array("of text", lambda x, rng: x.astype("U8"), "sentence"),
    array("of bytes", lambda x, rng: x.astype("S8"), "sentence"),
    array("of records", lambda x, rng: np.zeros(9, dtype=[("a", float), ("b", "S3")]), "sentence"),
    array("of objects with a payload", lambda x, rng: np.array([Bomb(), 1], dtype=object), "sentence"),
    array("of no axes", lambda x, rng: np.float64(1), "sentence"),
    array("of one axis", lambda x, rng: x[:, 0]),
    array("of three axes", lambda x, rng: x.reshape(8, 3, 3)),
    array("without rows", lambda x, rng: x[:0], "sentence"),
    array("without columns", lambda x, rng: x[:, :0], "sentence"),
    array("of one column more", lambda x, rng: np.hstack([x, x[:, :1]])),
    array("in Fortran's order", lambda x, rng: np.asfortranarray(x), "right"),
    array("of the largest integers", lambda x, rng: np.full((9, 3), 2**64 - 1, dtype="u8") - np.arange(3, dtype="u8")),
    array("of 64 axes", lambda x, rng: np.zeros((2,) + (1,) * 31), "either"),
    text("a pickle", pickle.dumps(Bomb()), ".npy", expect="sentence"),
]
ARCHIVES = [
    array("of objects with a payload", lambda x, rng: {"X": np.array([Bomb()], dtype=object)}, "sentence", ".npz"),
    array("with labels of another length", lambda x, rng: {"X": x, "y": np.arange(5) % 2}, "either", ".npz"),
    array("with labels that are objects", lambda x, rng: {"X": x, "y": np.array([Bomb()] * 24)}, "either", ".npz"),
    array("with labels not in UTF-8", lambda x, rng: {"X": x, "y": np.array([b"\xff", b"a"] * 12)}, "either", ".npz"),
    array("with a test part of another width", lambda x, rng: {"X_train": x, "X_test": x[:, :2]}, "sentence", ".npz"),
    array("without arrays", lambda x, rng: {}, "sentence", ".npz"),
    array("with strange names", lambda x, rng: {"../a": x, "b": x}, "sentence", ".npz"),
]
SVMLIGHT = [
    text("index 2^40", LINES + f"1 {2**40}:1\n", ".svm", expect="sentence"),
    text("index 2^70", LINES + f"1 {2**70}:1\n", ".svm", expect="sentence"),
    text("a negative index", LINES + "1 -3:1\n", ".svm", expect="sentence"),
    text("index 0", LINES + "1 0:1 1:2\n", ".svm", plain=False),
    text("an index twice", LINES + "1 1:1 1:2\n", ".svm", plain=False),
    text("an endless number", LINES + "1 1:" + "9" * 5000 + "\n", ".svm", expect="sentence"),
    text("an endless index", LINES + "1 " + "9" * 5000 + ":1\n", ".svm", expect="sentence"),
    text("rows without values", "1\n0\n1\n", ".svm", expect="sentence"),
    text("bytes not in UTF-8", LINES.encode() + b"1 1:\xff\n", ".svm", expect="sentence"),
]
PARQUET = [
    parquet_of("invalid UTF-8", _bad_utf8),
    parquet_of("invalid UTF-8 in a name", lambda pa: pa.table({"a\x1b[2J": [1.0, 2.0], "b": [1.0, 3.0]})),
    parquet_of("no rows", lambda pa: pa.table({"a": pa.array([], pa.float64())}), "sentence"),
    parquet_of("no columns", lambda pa: pa.table({}), "sentence"),
    parquet_of("lists", lambda pa: pa.table({name: [[1, 2], [3]] for name in "abc"}), "sentence"),
    parquet_of("structs", lambda pa: pa.table({name: [{"x": 1}, {"x": 2}] for name in "abc"}), "sentence"),
    parquet_of("nothing but gaps", lambda pa: pa.table({name: pa.nulls(9) for name in "abc"})),
    parquet_of("decimals", lambda pa: pa.table({n: pa.array([1, 2, 5]).cast(pa.decimal128(38, 2)) for n in "abc"})),
    parquet_of("times", lambda pa: pa.table({n: pa.array([1, 2, 5]).cast(pa.timestamp("s")) for n in "abc"})),
    parquet_of("bytes", lambda pa: pa.table({name: [b"\xff", b"a", b"b"] for name in "abc"})),
    parquet_of("half floats", lambda pa: pa.table({n: pa.array(np.arange(9, dtype=np.float16) ** 2) for n in "abc"})),
    parquet_of("large integers", lambda pa: pa.table({n: pa.array([2**63 - i for i in (1, 2, 9)]) for n in "abc"})),
    parquet_of("categories", lambda pa: pa.table({n: pa.array(["x", "y"] * 4).dictionary_encode() for n in "abc"})),
    text("a pickle", pickle.dumps(Bomb()), ".parquet", expect="sentence"),
]
IMAGES = [
    tree("a FIFO", lambda path, rng: os.mkfifo(path / "pipe.png"), "sentence"),
    tree("a folder called .png", lambda path, rng: (path / "folder.png").mkdir()),
    tree("a folder that contains itself", link_loop),
    tree("a link to nowhere", lambda path, rng: (path / "link.png").symlink_to("nowhere.png"), "sentence"),
    tree("a link to itself", lambda path, rng: (path / "link.png").symlink_to("link.png"), "sentence"),
    tree("a link to /dev/zero", lambda path, rng: (path / "zero.png").symlink_to("/dev/zero"), "sentence"),
    tree("an empty file", lambda path, rng: (path / "none.png").touch(), "sentence"),
    tree("text", lambda path, rng: (path / "text.png").write_text("hello"), "sentence"),
    tree("a pickle", lambda path, rng: (path / "p.png").write_bytes(pickle.dumps(Bomb())), "sentence"),
    tree("a bomb", png_bomb, "sentence"),
    tree("another size", image("large.png", size=(9, 9)), plain=False),
    tree("a size of 1 × 1", image("small.png", size=(1, 1)), plain=False),
    tree("a name with escape codes", image("a\x1b[2J.png", size=(9, 9)), plain=False),
    tree("a name with a line break", image("a\nb.png", size=(9, 9)), plain=False),
    Bad("an empty folder", "", lambda path, rng: path.mkdir(), "sentence"),
    Bad("a folder of text", "", _folder_of_text, "sentence"),
]
KINDS_OF_FILE = [
    Bad(f"{what} called data{suffix}", suffix, make, "sentence")
    for suffix in (".csv", ".npy", ".npz", ".parquet", ".svm")
    for what, make in (
        ("a folder", lambda path, rng: path.mkdir()),
        ("a FIFO", lambda path, rng: os.mkfifo(path)),
        ("nothing", lambda path, rng: None),
        ("a link to itself", lambda path, rng: path.symlink_to(path.name)),
        ("a link to /dev/zero", lambda path, rng: path.symlink_to("/dev/zero")),
    )
]
SPECIAL = [*TEXTS, *CELLS, *ARRAYS, *ARCHIVES, *SVMLIGHT, *PARQUET, *IMAGES, *KINDS_OF_FILE]
for number in (np.nan, np.inf, -np.inf, 1e155, 1e200, -1e308):
    SPECIAL += with_value(number)
FILES = {
    ".csv": "table.csv",
    ".npy": "array.npy",
    ".npz": "array.npz",
    ".parquet": "table.parquet",
    ".svm": "lines.svm",
    "": "images",
}
DAMAGED = [damaged(suffix, file, mutation) for mutation in BYTES for suffix, file in FILES.items()]
"""Random damage comes again and again with other numbers, special files come once for each verb."""

NAMES = (
    *("a b.csv", "-x.csv", "--out.csv", "ü.csv", "\x1b[2J.csv", "a\nb.csv", "%s%n.csv", "$(touch executed).csv"),
    *("\udcff.csv", "x" * 200 + ".csv", "x" * 300 + ".csv", "~nosuchuser/x.csv", "", " ", "/", ".", "..", "/dev/null"),
    *("/dev/zero", "/dev/stdin", "/proc/self/mem", "x.csv/", "x.csv/y", "http://127.0.0.1:9/x.csv", "x.docx", "x"),
)


def cases(seed: int, size: int) -> tuple[Case, ...]:
    """Return special files, each with one of the verbs, then strange names, then random damage."""
    made = [_case(number, bad, seed) for number, bad in enumerate(_interleaved())]
    made += [_named(len(made) + number, name, seed) for number, name in enumerate(NAMES)]
    while len(made) < size:
        made.append(_case(len(made), DAMAGED[len(made) % len(DAMAGED)], seed))
    return tuple(made)


def _interleaved() -> list[Bad]:
    """Begin with a few cases of every kind, for the quick version."""
    first = SPECIAL[::3] + DAMAGED
    return first + [bad for place, bad in enumerate(SPECIAL) if place % 3] + SPECIAL[::3]


def _case(number: int, bad: Bad, seed: int) -> Case:
    source = f"data{bad.suffix}" if bad.suffix else "pictures"
    run = EMBED_RUN[bad.suffix]
    read = None if bad.clean else source if bad.plain and bad.suffix in FILES and bad.suffix else ""
    embed = number % 3 != 2

    def make(reference: Path, rng: Generator) -> None:
        os.environ["HOSTILE_REFERENCE"] = str(reference)
        if embed:
            shutil.copytree(reference / run, run)
        bad.write(Path(source), rng)

    if embed:
        call: tuple[str, ...] = ("embed", run, "--data", source, "--out", "out.npy")
        return Case(
            "data", number, f"embed: {bad.label}", seed, call, make, bad.expect, _embedded(read, run), ("out.npy",),
            )  # fmt: skip
    call = ("train", "--data", source, "--out", "run", "--epochs", "1", *TINY)
    # A model can be trained on much that a given run cannot embed.
    right = trains(read or None) if bad.suffix not in (".svm", "") and bad.expect != "right" else trains(None)
    return Case(
        "data", number, f"train: {bad.label}", seed, call, make, bad.expect, right, ("run", "run/*"),
    )  # fmt: skip


def _embedded(read: str | None, run: str) -> Check:
    if read == "":  # nobody else reads it
        return lambda reference: None if np.isfinite(np.load("out.npy")).all() else "the embedding is not finite"
    return embeds(read, run)


def _named(number: int, name: str, seed: int) -> Case:
    """Return the case of a strange name, with a sound file behind it where that can be."""

    def make(reference: Path, rng: Generator) -> None:
        if name.endswith(".csv") and "/" not in name and len(os.fsencode(name)) < 256:
            write_table(Path(name))

    call = ("train", "--data", name, "--out", "run", "--epochs", "1", *TINY)
    return Case(
        "data", number, f"the name {name[:30]!r}", seed, call, make, right=trains(None), writes=("run", "run/*")
    )
