"""CIFAR-10 and CIFAR-100, from the publisher's archives or the folders they unpack to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset
from pinoise.data.formats.cifar import read_cifar

_SITE = "https://www.cs.toronto.edu/~kriz"


def read_cifar_set(paths: Sequence[Path], *, name: str) -> Dataset:
    """Read one archive or folder, of the binary or of the python version."""
    from pinoise.data.preparation import learn_arrays

    (path,) = paths
    return learn_arrays(read_cifar(path), name=name, where=str(path))[0]


def _entry(name: str, *, title: str, classes: int, binary: DataFile) -> Entry:
    return Entry(
        name=name,
        title=title,
        shape=(32, 32, 3),
        classes=classes,
        rows=(50000, 10000),
        split="the publisher's",
        licence="none stated",
        source=f"{_SITE}/cifar.html",
        reader=partial(read_cifar_set, name=name),
        files=(binary,),
        parsed=False,
    )


ENTRIES = (
    _entry(
        "cifar10",
        title="CIFAR-10: colour pictures of 32 × 32 pixels",
        classes=10,
        binary=DataFile(
            "cifar-10-binary.tar.gz",
            sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            url=f"{_SITE}/cifar-10-binary.tar.gz",
            instead=(
                DataFile("cifar-10-batches-bin", folder=True),
                DataFile("cifar-10-batches-py", folder=True),
                DataFile(
                    "cifar-10-python.tar.gz",
                    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
                ),
            ),
        ),
    ),
    _entry(
        "cifar100",
        title="CIFAR-100: colour pictures of 32 × 32 pixels, by their fine labels",
        classes=100,
        binary=DataFile(
            "cifar-100-binary.tar.gz",
            sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            url=f"{_SITE}/cifar-100-binary.tar.gz",
            instead=(
                DataFile("cifar-100-binary", folder=True),
                DataFile("cifar-100-python", folder=True),
                DataFile(
                    "cifar-100-python.tar.gz",
                    sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
                ),
            ),
        ),
    ),
)
