"""What is killed: small real runs of every kind of data, and the verbs that write files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.problems import write_images, write_people

NETWORKS = (
    *("--device", "cpu", "--set", "training.information_draws=2", "--set", "noise.generator.hidden=32"),
    *("--set", "head.hidden=16", "--set", "head.out_features=8"),
)
MLP = (*NETWORKS, "--set", "encoder.hidden=32", "--set", "encoder.out_features=16", "--batch-size", "64")
VIT = (
    *(*NETWORKS, "--encoder", "vit", "--set", "encoder.dim=32", "--set", "encoder.depth=1", "--set", "encoder.heads=2"),
    *("--generator", "mlp", "--batch-size", "12", "--epochs", "12", "--set", "training.checkpoint_every=3"),
)
OFTEN = ("--epochs", "25", "--set", "training.checkpoint_every=3")


def digits() -> np.ndarray:
    """Real samples: 400 handwritten digits."""
    from sklearn.datasets import load_digits

    x: np.ndarray = load_digits().data[:400]
    return x


def write_nothing(folder: Path) -> None:
    """Need no file: the data comes by name."""


def write_array(folder: Path) -> None:
    """Write the digits as an array, of which training reads a batch at a time."""
    np.save(folder / "x.npy", digits().astype(np.float32))


def write_table(folder: Path) -> None:
    """Write a table with text, gaps and a class."""
    write_people(folder / "people.csv", rows=120)


def write_parquet(folder: Path) -> None:
    """Write the same table many times over as Parquet, in several row groups."""
    import pyarrow.csv
    import pyarrow.parquet

    write_table(folder)
    table = pyarrow.csv.read_csv(folder / "people.csv")
    pyarrow.parquet.write_table(pyarrow.concat_tables([table] * 4), folder / "people.parquet", row_group_size=100)


def write_folder(folder: Path) -> None:
    """Write images of three classes."""
    write_images(folder / "images", *(f"{'abc'[row % 3]}/{row:03}.png" for row in range(48)), size=(16, 16))


@dataclass(frozen=True)
class Training:
    """A training that is killed and resumed.

    Args:
        flags: of ``pinoise train``, without ``--out``.
        kills: in the long version.
        write: writes the data into a folder.
        devices: the processes that train together.
    """

    flags: tuple[str, ...]
    kills: int
    write: Callable[[Path], None] = write_nothing
    devices: int = 1

    @property
    def source(self) -> tuple[str, ...]:
        """The flags by which ``pinoise embed`` reads the data."""
        return ("--data", self.flags[self.flags.index("--data") + 1])


TRAININGS: dict[str, Training] = {
    "two processes": Training(("--data", "digits", "--rows", "300", *MLP, *OFTEN, "--devices", "2"), 40, devices=2),
    "vectors": Training(("--data", "digits", "--rows", "300", *MLP, *OFTEN), 30),
    "table": Training(("--data", "people.csv", "--target", "group", *MLP, *OFTEN), 20, write_table),
    "array in a file": Training(("--data", "x.npy", *MLP, *OFTEN), 20, write_array),
    "streamed": Training(
        ("--data", "people.parquet", "--label", "group", "--set", "data.stream=always", *MLP, *OFTEN),
        30,
        write_parquet,
    ),
    "images": Training(("--data", "images", *VIT), 25, write_folder),
}


@dataclass(frozen=True)
class Verb:
    """A command that reads a finished run and writes files, and is killed and started again.

    Args:
        arguments: of the command, in a folder with the run ``run``.
        kills: in the long version.
        out: what it writes.
        exact: whether two runs of it write the same bytes; reports have a date.
    """

    arguments: tuple[str, ...]
    kills: int
    out: str
    exact: bool = True


PEOPLE = ("--data", "people.csv", "--force")
VERBS: dict[str, Verb] = {
    "embed .npy": Verb(("embed", "run", *PEOPLE, "--out", "z.npy"), 6, "z.npy"),
    "embed .parquet": Verb(("embed", "run", *PEOPLE, "--out", "z.parquet"), 6, "z.parquet"),
    "embed .csv": Verb(("embed", "run", *PEOPLE, "--out", "z.csv"), 6, "z.csv"),
    "predict": Verb(("predict", "run", *PEOPLE, "--out", "p.csv"), 6, "p.csv"),
    "evaluate": Verb(("evaluate", "run", "--label", "group", "--data", "people.csv"), 6, "run/evaluation.json"),
    "export": Verb(("export", "run", "--out", "m.onnx", "--force"), 6, "m.onnx"),
    "report": Verb(("report", "run", "--out", "page", "--force"), 4, "page/report.html", exact=False),
}
RUN = ("--data", "people.csv", "--target", "group", *MLP, "--epochs", "3")  # the run that the verbs read
FAMILIES = (*TRAININGS, *VERBS)


def wanted(family: str) -> int:
    """Return the kills of a family in the long version."""
    return TRAININGS[family].kills if family in TRAININGS else VERBS[family].kills
