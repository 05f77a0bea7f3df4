"""Fashion-MNIST, from its publisher's IDX files, Debian's package of them, or one prepared file of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pinoise.data.catalogue.fetch import DataFile
from pinoise.data.catalogue.publishers.collection import read_collection
from pinoise.data.catalogue.publishers.entry import Entry
from pinoise.data.dataset import Dataset
from pinoise.data.formats.idx import read_idx
from pinoise.data.formats.raw import RawArrays, RawPart

_CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def read_fashion_mnist(paths: Sequence[Path]) -> Dataset:
    """Read training images and labels and test images and labels, or the one file that has all four."""
    if len(paths) == 1:
        return read_collection(paths, name="fashion_mnist", class_names=_CLOTHES)
    from pinoise.data.preparation import learn_arrays

    x_train, y_train, x_test, y_test = (read_idx(path) for path in paths)
    raw = RawArrays(RawPart(x_train, y_train), RawPart(x_test, y_test), class_names=_CLOTHES)
    return learn_arrays(raw, name="fashion_mnist", where=str(paths[0].parent))[0]


def _file(name: str, sha256: str, *, debian: str, unpacked: str) -> DataFile:
    # In a folder of their own, as in Debian's package: MNIST's files have the same names.
    return DataFile(
        f"fashion-mnist/{name}.gz",
        sha256=sha256,
        url=f"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/{name}.gz",
        instead=(DataFile(f"fashion-mnist/{name}", sha256=unpacked),),
        repacked=(debian,),
    )


ENTRIES = (
    Entry(
        name="fashion_mnist",
        title="Fashion-MNIST: grey pictures of clothes, 28 × 28 pixels",
        shape=(28, 28),
        classes=10,
        rows=(60000, 10000),
        split="the publisher's",
        licence="MIT",
        source="https://github.com/zalandoresearch/fashion-mnist",
        reader=read_fashion_mnist,
        files=(
            _file(
                "train-images-idx3-ubyte",
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                debian="b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
                unpacked="c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            ),
            _file(
                "train-labels-idx1-ubyte",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                debian="0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
                unpacked="bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            ),
            _file(
                "t10k-images-idx3-ubyte",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                debian="cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
                unpacked="5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            ),
            _file(
                "t10k-labels-idx1-ubyte",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                debian="8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
                unpacked="0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ),
        parsed=False,
        prepared=DataFile(
            "fashion_mnist.npz", sha256="063002653625f7c01815a5dcda78f6d9c531ea0fd1038ae5e533ab46c7f6075a"
        ),
    ),
)
