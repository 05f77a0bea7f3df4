"""STL-10, from the publisher's archive, which is unpacked into the cache, or from the folder it unpacks to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset
from pinoise.data.formats.stl10 import LABELLED, UNLABELLED, read_stl10, read_stl10_unlabelled

_SITE = "https://cs.stanford.edu/~acoates/stl10/"
_ARCHIVE = DataFile(
    "stl10_binary.tar.gz",
    sha256="f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
    url=f"{_SITE}stl10_binary.tar.gz",
    instead=(DataFile("stl10_binary", folder=True),),
)


def read_stl10_labelled(paths: Sequence[Path]) -> Dataset:
    """Map the labelled images, with the publisher's split."""
    from pinoise.data.preparation import learn_arrays

    (folder,) = paths
    return learn_arrays(read_stl10(folder), name="stl10", where=str(folder))[0]


def read_stl10_unlabeled(paths: Sequence[Path]) -> Dataset:
    """Map the unlabelled images as rows to train on."""
    from pinoise.data.preparation import learn_arrays

    (folder,) = paths
    data, _ = learn_arrays(read_stl10_unlabelled(folder), name="stl10_unlabeled", where=str(folder))
    return replace(data, notes=("the labelled images are not among these: they are the set stl10",))


ENTRIES = (
    Entry(
        name="stl10",
        title="STL-10: colour pictures of 96 × 96 pixels, its labelled parts",
        shape=(96, 96, 3),
        classes=10,
        rows=(5000, 8000),
        split="the publisher's",
        licence="none stated; pictures are from ImageNet",
        source=_SITE,
        reader=read_stl10_labelled,
        files=(_ARCHIVE,),
        parsed=False,
        unpacked=LABELLED,
    ),
    Entry(
        name="stl10_unlabeled",
        title="STL-10: the unlabelled part to train on; stl10 has the labels to evaluate with",
        shape=(96, 96, 3),
        classes=0,
        rows=(100000, 0),
        split="none: pictures without labels",
        licence="none stated; pictures are from ImageNet",
        source=_SITE,
        reader=read_stl10_unlabeled,
        files=(_ARCHIVE,),
        parsed=False,
        unpacked=UNLABELLED,
    ),
)
