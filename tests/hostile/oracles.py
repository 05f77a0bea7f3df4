"""Independent readings of data files, and the checks of results against them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from tests.hostile.case import Check
from tests.hostile.reference import WEIGHTS, numbers, pixels

Array = npt.NDArray[Any]


def read_csv(path: Path) -> Array:
    """Read a table of numbers with Python's own reader: columns a, b and c, in this order; an empty cell is nan."""
    text = path.read_bytes().decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    names = [name.strip() for name in rows[0]]
    return np.array([[float(row[names.index(name)] or "nan") for name in "abc"] for row in rows[1:]])


def read_svmlight(path: Path) -> Array:
    """Read svmlight's format, indices from 1."""
    rows = []
    for line in path.read_text().splitlines():
        cells = dict(cell.split(":") for cell in line.partition("#")[0].split()[1:] if not cell.startswith("qid"))
        if line.partition("#")[0].strip():
            rows.append([float(cells.get(str(index), 0)) for index in (1, 2, 3)])
    return np.array(rows)


def read_parquet(path: Path) -> Array:
    """Read a table of numbers column by column."""
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(path).read()
    return np.stack([np.array(table.column(name).to_pylist(), dtype=float) for name in "abc"], axis=1)


def read_npy(path: Path) -> Array:
    """Read an array without pickle."""
    return np.asarray(np.load(path, allow_pickle=False), dtype=float)


def read_npz(path: Path) -> Array:
    """Read the array X of an archive."""
    with np.load(path, allow_pickle=False) as archive:
        return np.asarray(archive["X"], dtype=float)


READERS = {
    ".csv": read_csv,
    ".svm": read_svmlight,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
}


def standardised(x: Array, run: Path) -> Array:
    """Return samples in the units of a run, as the joined embedding begins with them."""
    units = safetensors.numpy.load_file(run / "standardizer.safetensors")
    scale = np.where(units["scale"] == 0, np.inf, units["scale"])
    return np.asarray(((x - units["mean"]) / scale).reshape(len(x), -1))


def embeds(source: str | None, run: str, *, out: str = "out.npy") -> Check:
    """Return the check that an embedding is finite and begins with the samples of a file, read independently.

    ``source`` None stands for the reference samples.
    """

    def check(reference: Path) -> str | None:
        found = np.load(out)
        if not np.isfinite(found).all():
            return f"{(~np.isfinite(found)).sum()} entries of the embedding are not finite"
        try:
            x = _samples(source, run)
        except Exception as error:
            return f"it was accepted, but an independent reader refuses it ({type(error).__name__}: {error})"
        if x.ndim == 1:
            x = x[:, None]
        expected = standardised(x, reference / run)
        if len(found) != len(expected):
            return f"{len(found)} rows, but an independent reader finds {len(expected)}"
        known = ~np.isnan(expected)  # what is missing is filled
        if not np.allclose(found[:, : expected.shape[1]][known], expected[known], rtol=1e-4, atol=1e-5):
            return "the values differ from those of an independent reader"
        return None

    return check


def _samples(source: str | None, run: str) -> Array:
    if source is not None:
        return READERS[Path(source).suffix](Path(source))
    return pixels().astype(float) if run == "images_run" else numbers()


def trains(source: str | None, run: str = "run") -> Check:
    """Return the check that a run has finite weights, and the means of a file that is read independently."""

    def check(reference: Path) -> str | None:
        if wrong := finite_weights(Path(run)):
            return wrong
        if source is None:
            return None
        try:
            x = READERS[Path(source).suffix](Path(source))
        except Exception as error:
            return f"it was accepted, but an independent reader refuses it ({type(error).__name__}: {error})"
        if np.isnan(x).any():
            return None  # what is missing is filled and marked
        mean = safetensors.numpy.load_file(Path(run) / "standardizer.safetensors")["mean"]
        x = x[:, None] if x.ndim == 1 else x
        # In any order of columns.
        if mean.shape != x.shape[1:] or not np.allclose(np.sort(mean), np.sort(x.mean(axis=0)), rtol=1e-6, atol=1e-9):
            return f"means {mean} differ from those of an independent reader {x.mean(axis=0)}"
        return None

    return check


def finite_weights(run: Path) -> str | None:
    """Return what is wrong with the weights of a run, if anything."""
    for name in WEIGHTS:
        if not (run / name).exists():
            if name == "noise.safetensors":
                continue  # a run without learned noise
            return f"{name} is missing"
        for key, tensor in safetensors.numpy.load_file(run / name).items():
            if not np.isfinite(tensor).all():
                return f"{name}: {key} is not finite"
    return None


def same_weights(run: str, of: str) -> Check:
    """Return the check that a run has the weights of a reference run, to the bit."""

    def check(reference: Path) -> str | None:
        for name in WEIGHTS:
            found, wanted = (safetensors.numpy.load_file(folder / name) for folder in (Path(run), reference / of))
            same = found.keys() == wanted.keys() and all(np.array_equal(found[key], wanted[key]) for key in wanted)
            if not same:
                return f"{name} differs from that of an undisturbed run"
        return None

    return check


def same_predictions(found: str, wanted: str) -> Check:
    """Return the check that predictions are those of a sound run."""

    def check(reference: Path) -> str | None:
        mine, right = (_predictions(path) for path in (Path(found), reference / wanted))
        same = mine[:2] == right[:2] and np.allclose(mine[2], right[2], atol=1e-9)
        return None if same else f"{found} differs from what sound files give"

    return check


def sound_predictions(found: str) -> Check:
    """Return the check that predictions are probabilities, and the class the most probable one."""

    def check(reference: Path) -> str | None:
        names, classes, p = _predictions(Path(found))
        if not (np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1)):
            return "the probabilities are not finite, or do not sum to 1"
        likely = [names[1 + at] for at in p.argmax(axis=1)]
        return None if likely == [f"p={name}" for name in classes] else "the class is not the most probable one"

    return check


def _predictions(path: Path) -> tuple[list[str], list[str], Array]:
    """Read predictions: the names of columns, the classes, and the probabilities."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return names, [row[0] for row in rows], np.array([[float(cell) for cell in row[1:]] for row in rows])


def same_array(found: str, wanted: str) -> Check:
    """Return the check that an array is a reference array, to the bit."""

    def check(reference: Path) -> str | None:
        mine, right = np.load(found), np.load(reference / wanted)
        return None if np.array_equal(mine, right) else f"{found} differs from what sound files give"

    return check
