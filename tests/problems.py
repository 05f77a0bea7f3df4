"""What several tests share: a table as users have them, vectors with classes, images, and runs that take a moment."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

TINY = (
    *("--batch-size", "32", "--device", "cpu", "--set", "training.information_draws=0"),
    *("--set", "encoder.hidden=8", "--set", "encoder.out_features=4"),
)
"""Flags with which a run takes a moment."""


def write_people(path: Path, *, rows: int = 60, seed: int = 0) -> Path:
    """Write a table with a text column, missing values of both kinds, and a label that the features tell."""
    rng = np.random.default_rng(seed)
    lines = ["age,town,income,group"]
    for row in range(rows):
        group = row % 2
        age = "" if row % 11 == 3 else f"{30 + 20 * group + rng.normal():.2f}"
        town = "" if row % 13 == 5 else str(rng.choice(["Oslo", "Rome", "Bern"]))
        lines.append(f"{age},{town},{1000 + 500 * group + 50 * rng.normal():.1f},{'yes' if group else 'no'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_vectors(path: Path, *, rows: int = 60) -> np.ndarray:
    """Write a table of four numbers and a class that the first one tells, and return the numbers."""
    x = np.random.default_rng(0).normal(size=(rows, 4)).round(4)
    lines = [f"{','.join(map(str, row))},{'ab'[int(row[0] > 0)]}" for row in x.tolist()]
    path.write_text("\n".join(["p,q,r,s,class", *lines]) + "\n")
    return x


def write_images(folder: Path, *names: str, size: tuple[int, ...] = (8, 8)) -> Path:
    """Write random images under these names, in folders that are made; a size of three is that of colours."""
    from PIL import Image

    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, size, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)
    return folder


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Refuse to make files longer, as a full disk does; the system says that the file is too large."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder: Path) -> dict[str, bytes | str]:
    """Return what every file in a folder holds, and where every link leads."""
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }
