"""MSLR-WEB30K of Microsoft Research: web pages judged for queries, with grades from 0 to 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset, Part
from pinoise.data.formats.archives import GIB, open_compressed, open_member
from pinoise.data.formats.svmlight import parse_svmlight
from pinoise.errors import UserError

_FEATURES = 136
_GRADES = 5
_HOMEPAGE = "https://www.microsoft.com/en-us/research/project/mslr/"


def read_mslr(paths: Sequence[Path]) -> Dataset:
    """Read the first fold from the publisher's zip; its validation part is left out."""
    (path,) = paths
    parts = []
    for side in ("train", "test"):
        with open_member(path, f"Fold1/{side}.txt", limit=16 * GIB) as stream:
            parts.append(_part(stream, f"{path}: Fold1/{side}.txt"))
    return Dataset("mslr_web30k", train=parts[0], test=parts[1], notes=("Fold1/vali.txt of the publisher is left out",))


def read_mslr_sample(paths: Sequence[Path]) -> Dataset:
    """Read a training and a test file of the publisher's text, plain or compressed."""
    parts = []
    for path in paths:
        with open_compressed(path) as stream:
            parts.append(_part(stream, str(path)))
    return Dataset("mslr_5k", train=parts[0], test=parts[1])


def _part(stream: BinaryIO, label: str) -> Part:
    raw = parse_svmlight(stream, where=label, n_features=_FEATURES, first_index=1, dense=True).train
    if raw.groups is None:
        raise UserError(f"{label}: every row needs a query, written as qid:number.")
    y = np.asarray(raw.y)
    wrong = np.flatnonzero(~np.isin(y, np.arange(_GRADES)))
    if wrong.size:
        raise UserError(
            f"{label}, row {wrong[0] + 1}: the grade {y[wrong[0]]:g} was found; allowed are 0 to {_GRADES - 1}."
        )
    return Part(raw.x, y.astype(np.int64), raw.groups)


ENTRIES = (
    Entry(
        name="mslr_web30k",
        title="MSLR-WEB30K, fold 1: 136 features of query and web page, five grades",
        shape=(_FEATURES,),
        classes=_GRADES,
        rows=(2_270_296, 753_611),
        split="the publisher's first fold, by query; its validation part is left out",
        licence="Microsoft Research's own terms",
        source=_HOMEPAGE,
        reader=read_mslr,
        files=(DataFile("MSLR-WEB30K.zip", hint=f"get it from {_HOMEPAGE} and "),),
    ),
    Entry(
        name="mslr_5k",
        title="MSLR-WEB30K, the first 5,000 rows of each part of fold 1",
        shape=(_FEATURES,),
        classes=_GRADES,
        rows=(5000, 5000),
        split="the publisher's first fold, by query",
        licence="Microsoft Research's own terms",
        source=_HOMEPAGE,
        reader=read_mslr_sample,
        files=(
            DataFile(
                "msn1.fold1.train.5k.txt.gz",
                sha256="fb67079f1d81c4c17c97cb311de49987c1eacf6a72afb302d3208f2047423103",
            ),
            DataFile(
                "msn1.fold1.test.5k.txt.gz",
                sha256="ceed3153e75d5a3f52bd7dfeefe53480dd8d7e2fd2ceb2d168ddeeb696ab5130",
            ),
        ),
    ),
)
