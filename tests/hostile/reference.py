"""Sound files that cases alter: tables, arrays, images, finished runs, a model file, and what they give."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.commands import here
from tests.hostile.case import MARKER
from tests.problems import write_people

ROWS = 24
TINY = (
    *("--batch-size", "8", "--device", "cpu", "--set", "encoder.hidden=8", "--set", "encoder.out_features=4"),
    *("--set", "head.hidden=8", "--set", "head.out_features=4", "--set", "training.information_draws=0"),
)
"""Settings with which a run takes a moment."""

WEIGHTS = ("encoder.safetensors", "embedding.safetensors", "noise.safetensors", "standardizer.safetensors")


class Bomb:
    """What a pickle runs when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Write the marker."""
        return (open, (MARKER, "w"))


def numbers() -> npt.NDArray[np.float64]:
    """The samples of every reference file of numbers: 24 rows of 3, all exact in text."""
    return np.round(np.random.default_rng(7).normal(size=(ROWS, 3)) * [1, 10, 100], 3)


def pixels() -> npt.NDArray[np.uint8]:
    """The samples of the reference folder of images: 12 gray images of 6 × 6."""
    return np.random.default_rng(8).integers(0, 256, size=(12, 6, 6), dtype=np.uint8)


def write_table(path: Path, x: npt.NDArray[np.float64] | None = None) -> Path:
    """Write numbers as a CSV file."""
    x = numbers() if x is None else x
    lines = ["a,b,c", *(",".join(repr(float(value)) for value in row) for row in x)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_svmlight(path: Path) -> Path:
    """Write numbers in svmlight's format."""
    cells = (" ".join(f"{i}:{value!r}" for i, value in enumerate(row.tolist(), start=1)) for row in numbers())
    path.write_text("".join(f"{row % 2} {line}\n" for row, line in enumerate(cells)))
    return path


def write_images(folder: Path) -> Path:
    """Write images as PNG files."""
    from PIL import Image

    folder.mkdir()
    for number, image in enumerate(pixels()):
        Image.fromarray(image).save(folder / f"{number:02d}.png")
    return folder


def prepare(folder: Path) -> None:
    """Make all reference files in a folder."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            _prepare()
    finally:
        os.chdir(here)


def _prepare() -> None:
    import pyarrow as pa
    import pyarrow.parquet

    x = numbers()
    write_table(Path("table.csv"))
    write_people(Path("people.csv"), rows=ROWS)
    np.save("array.npy", x)
    np.savez("array.npz", X=x)
    pyarrow.parquet.write_table(pa.table({name: x[:, i] for i, name in enumerate("abc")}), "table.parquet")
    write_svmlight(Path("lines.svm"))
    write_images(Path("images"))
    for name, data, more in (
        ("table", "table.csv", ()),
        ("array", "array.npy", ()),
        ("lines", "lines.svm", ("--set", "data.scaling=features")),
        ("images_run", "images", ()),
        ("people", "people.csv", ("--label", "group")),
    ):
        _run("train", "--data", data, "--out", name, "--epochs", "2", *TINY, *more)
    _run("train", "--data", "people.csv", "--label", "group", "--out", "people_longer", "--epochs", "4", *TINY)
    _run("train", "--data", "people.csv", "--target", "group", "--out", "voters", "--epochs", "2", *TINY)
    _run("predict", "voters", "--data", "people.csv", "--out", "voters.predictions.csv")
    for name, data in (("table", "table.csv"), ("people", "people.csv")):
        _run("embed", name, "--data", data, "--out", f"{name}.embedding.npy")
    _run("evaluate", "people", "--json")


def _run(*arguments: str) -> None:
    code = here(*arguments)
    if code != 0:
        raise RuntimeError(f"a sound command ended with {code}: {arguments}")
