"""Prepared sets in plain numpy files: they have no download address and are found through ``PINOISE_DATA``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset
from pinoise.data.formats.arrays import read_npz

_BY_SUBJECT = "by subject, as in UCI HAR: 21 people to train on, 9 others to test on"
_HELD_OUT = "held out from the whole set by whoever prepared the file"
_ACTIVITIES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
_DIGITS = tuple(str(digit) for digit in range(10))
_SCIKIT_FEATURE = "Li et al., Feature selection: a data perspective, ACM Computing Surveys 50 (2017)"


def read_collection(paths: Sequence[Path], *, name: str, class_names: tuple[str, ...] | None = None) -> Dataset:
    """Read one ``.npz`` as a user's file is read; names of classes in it win over ``class_names``."""
    from pinoise.data.preparation import learn_arrays

    (path,) = paths
    raw = read_npz(path)
    return learn_arrays(replace(raw, class_names=raw.class_names or class_names), name=name, where=str(path))[0]


def _prepared(
    name: str,
    file: str,
    sha256: str,
    *,
    title: str,
    shape: tuple[int, ...],
    classes: int,
    rows: tuple[int, int],
    split: str,
    source: str,
    licence: str = "none stated",
    class_names: tuple[str, ...] | None = None,
) -> Entry:
    return Entry(
        name=name,
        title=title,
        shape=shape,
        classes=classes,
        rows=rows,
        split=split,
        licence=licence,
        source=source,
        reader=partial(read_collection, name=name, class_names=class_names),
        files=(DataFile(file, sha256=sha256),),
        parsed=False,
    )


ENTRIES = (
    _prepared(
        "hapt561",
        "har_hapt561.npz",
        "6dc6b0078d6f304773819dfc358d65295d9ef4926a9f80b5dbd1520f118d4a1c",
        title="UCI HAR's 561 features derived anew from the HAPT recordings; not the files of UCI HAR",
        shape=(561,),
        classes=6,
        rows=(7415, 2996),
        split=_BY_SUBJECT,
        source="https://archive.ics.uci.edu/dataset/341",
        class_names=_ACTIVITIES,
    ),
    _prepared(
        "hapt_raw",
        "har_hapt_raw.npz",
        "84d7726df2afee4f08e38cefbdb0eab54f4f81f25b3b32d096f677bf9b82ca67",
        title="The windows behind hapt561: acceleration and gyroscope, 128 steps at 50 Hz",
        shape=(128, 6),
        classes=6,
        rows=(7415, 2996),
        split=_BY_SUBJECT,
        source="https://archive.ics.uci.edu/dataset/341",
        class_names=_ACTIVITIES,
    ),
    _prepared(
        "reuters46",
        "reuters46.npz",
        "5a4d3193541a3c45d5f25c38d5d40c39ac4bf20279a54dfde2f1a93aac3b4606",
        title="Reuters-21578 in the well-known 46 topics; tf-idf of 2,000 words, dense",
        shape=(2000,),
        classes=46,
        rows=(8982, 2246),
        split="the usual one of this set, at random 80/20",
        source="https://archive.ics.uci.edu/dataset/137",
        licence="for research only",
    ),
    _prepared(
        "reuters46_sparse",
        "reuters46_train.sparse.npz",
        "0bf86289fdcd96a96893dc5b34077051c64957f1f6fe6b6d9cbb147e087197ce",
        title="The training part of reuters46 as a sparse matrix, without labels",
        shape=(2000,),
        classes=0,
        rows=(8982, 0),
        split="none: training part only",
        source="https://archive.ics.uci.edu/dataset/137",
        licence="for research only",
    ),
    _prepared(
        "newsgroups20",
        "newsgroups20.npz",
        "c81a1ccf2eacea98657e23c02e9e2d437b4a74979dc9184469769f01db62c6b7",
        title="20 newsgroups without headers, footers and quotes; tf-idf of 2,000 words, dense",
        shape=(2000,),
        classes=20,
        rows=(11314, 7532),
        split="the publisher's, by date",
        source="http://qwone.com/~jason/20Newsgroups/",
    ),
    _prepared(
        "rcv1_ccat",
        "rcv1_vw_ccat.npz",
        "0ac5f43d6a47a6434db4e4faf24676f275a41ec22741cc067366634ac1d3dd7f",
        title="A small sample of RCV1: is a story in the category CCAT?",
        shape=(2000,),
        classes=2,
        rows=(1000, 500),
        split=_HELD_OUT,
        source="Lewis, Yang, Rose and Li, RCV1: a new benchmark collection, JMLR 5 (2004)",
    ),
    _prepared(
        "cifar10_sub12k",
        "cifar10_sub12k.npz",
        "2e1e4a3d68df8f61fa2150e97291353ee1ae9d302494fe2b7db2951ac0292ec8",
        title="CIFAR-10, a stratified subset of colour pictures of 32 × 32 pixels",
        shape=(32, 32, 3),
        classes=10,
        rows=(10000, 2000),
        split="subsets of the publisher's training and test parts",
        source="https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    _prepared(
        "stl10_sample",
        "stl10_sample.npz",
        "404d2432e2867f0613398a4597421139e6eefef8400ce4d03a8381146b407679",
        title="STL-10, pictures of its unlabelled part, 96 × 96 pixels",
        shape=(96, 96, 3),
        classes=0,
        rows=(246, 0),
        split="none: pictures without labels",
        source="https://cs.stanford.edu/~acoates/stl10/",
    ),
    _prepared(
        "usps",
        "usps.npz",
        "5ef472409c949aacd83a55ec0470fc65a5a1f9933360e7035a442e0dec6896c7",
        title="USPS: handwritten digits of 16 × 16 pixels as vectors of 256 features",
        shape=(256,),
        classes=10,
        rows=(7291, 2007),
        split="the publisher's",
        source="Hull, A database for handwritten text recognition research, TPAMI 16 (1994)",
        class_names=_DIGITS,
    ),
    _prepared(
        "wisdm",
        "wisdm.npz",
        "fb4842a822f3b5b92369a46a8cfdd254d526fbf50cb1f6a39480636eacb264f2",
        title="WISDM: 43 features of a phone's acceleration, six activities",
        shape=(43,),
        classes=6,
        rows=(4095, 1323),
        split="by user: 28 to train on, 8 others to test on",
        source="https://www.cis.fordham.edu/wisdm/dataset.php",
    ),
    _prepared(
        "fsdd",
        "fsdd_logmel.npz",
        "587b8770e6fe186b2d5daf992f638576670e54eb2fde18027999bf7402f52487",
        title="Free spoken digits: log-mel spectrograms of 40 bands × 32 frames",
        shape=(40, 32),
        classes=10,
        rows=(2700, 300),
        split="the publisher's, by recording; the same six speakers on both sides",
        source="https://github.com/Jakobovski/free-spoken-digit-dataset",
        licence="CC BY-SA 4.0",
        class_names=_DIGITS,
    ),
    _prepared(
        "isolet",
        "skf_isolet.npz",
        "fe856ffccd1fb92c083f39c9979890e4d789eb3fdc88cf33dc8c24ae7a105b0f",
        title="Isolet: spoken letters, 1,560 rows of 617 features",
        shape=(617,),
        classes=26,
        rows=(1092, 468),
        split=_HELD_OUT,
        source=_SCIKIT_FEATURE,
    ),
    _prepared(
        "pcmac",
        "skf_pcmac.npz",
        "35eb815b23ca9689d9a1c85a9784c3604f2fd2a579189e99300d2c8067b18244",
        title="PCMAC: word counts of two newsgroups on computers",
        shape=(3289,),
        classes=2,
        rows=(1360, 583),
        split=_HELD_OUT,
        source=_SCIKIT_FEATURE,
    ),
    _prepared(
        "tox171",
        "skf_tox_171.npz",
        "e90c96a2782c602b133549bd0e998f2c5b3b81e76920c92c63138bc062ca8ffd",
        title="TOX-171: gene expression, many more features than rows",
        shape=(5748,),
        classes=4,
        rows=(119, 52),
        split=_HELD_OUT,
        source=_SCIKIT_FEATURE,
    ),
    _prepared(
        "ecg5000",
        "ucr_ecg5000.npz",
        "3b418243f3797212847756679fddd51848f4f6ec13bd7493e1025a3db4d8a256",
        title="ECG5000: heartbeats as series of 140 steps, very uneven classes",
        shape=(140,),
        classes=5,
        rows=(500, 4500),
        split="the publisher's",
        source="https://www.timeseriesclassification.com (UCR archive)",
    ),
)
