"""The ways in: from what a user names or holds to a data set, and to the preparation that reads more like it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pinoise.data.dataset import Dataset, split, varies
from pinoise.data.formats.memory import NAME, InMemory
from pinoise.data.options import DEFAULTS, ReadOptions
from pinoise.data.preparation import Preparation, prepare
from pinoise.errors import UserError


def open_source(
    source: str | Path, options: ReadOptions = DEFAULTS, *, progress: bool = False
) -> tuple[Dataset, Preparation]:
    """Return the data set of that name, file or folder, and the preparation that reads more like it.

    Args:
        source: a name of the catalogue, or what ``read_file`` reads.
        options: how it is read, and how many rows to train on.
        progress: whether downloads and the decoding of images show a bar.

    >>> data, preparation = open_source("digits", ReadOptions(rows=100))
    >>> len(data.train), data.shape, preparation.shape
    (100, (64,), (64,))
    """
    data, preparation = prepare(source, options, progress=progress)
    _check_learnable(data, source, "rows")
    return _limited(data, options), preparation


def open_for_training(
    source: str | Path, options: ReadOptions = DEFAULTS, *, progress: bool = False
) -> tuple[Dataset, Preparation]:
    """Open a source as ``open_source`` does, with test rows that training must not see.

    A source with labels and without a test part is split, always in the same way, so that a later evaluation has
    rows that the encoder does not know. ``options.rows`` limits what is left to train on. A source without labels
    cannot be scored and is used whole.

    >>> data, _ = open_for_training("digits", ReadOptions(rows=100))
    >>> len(data.train), len(data.test)
    (100, 360)
    """
    data, preparation = open_source(source, replace(options, rows=None), progress=progress)
    if data.test is None and data.train.y is not None:
        data = split(data)
        _check_learnable(data, source, "rows left to train on")
    return _limited(data, options), preparation


def read_file(
    path: str | Path, options: ReadOptions = DEFAULTS, *, progress: bool = False
) -> tuple[Dataset, Preparation]:
    """Read a training file or folder, and return it with the preparation that reads later ones the same way.

    CSV and Parquet: numbers are features. Text and truth values become one feature ``column=value`` for each of their
    values, and so do the numbers of ``categorical`` columns. A missing category is a category of its own. A text
    column with many values keeps the frequent ones, or is dropped where nearly all its values differ. The data set's
    notes say what was done.

    ``.npz`` holds ``X_train, y_train, X_test, y_test``, or ``X, y``, or one array, or a sparse matrix. ``.npy`` is
    not read into memory. Text with ``index:value`` pairs is svmlight's format. IDX files are those of MNIST.

    A folder holds images: directly, or in subfolders that are their classes, or in ``train`` and ``test`` or ``val``
    with either. Images are decoded whenever they are indexed. A folder with the unpacked files of MNIST, Fashion-MNIST,
    CIFAR-10, CIFAR-100 or STL-10 is read as such.

    Args:
        path: the file or folder.
        options: how it is read.
        progress: whether the decoding of images shows a bar.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,town,class\\n20,Rome,a\\n,Oslo,b\\n40,Rome,a\\n")
    ...     data, preparation = read_file(path, ReadOptions(label="class", mark_missing=False))
    >>> data.feature_names, data.notes
    (('age', 'town=Oslo', 'town=Rome'), ('filled 1 missing value in 1 column with its median: age',))
    """
    data, preparation = prepare(Path(path), options, progress=progress)
    return _limited(data, options), preparation


def from_arrays(
    X: object, y: object = None, options: ReadOptions = DEFAULTS, *, name: str = NAME
) -> tuple[Dataset, Preparation]:
    """Return samples in memory as a data set, with the preparation that reads later ones the same way.

    Args:
        X: an array of any rank, a SciPy sparse matrix, a torch tensor, nested lists, or a data frame of pandas,
            polars, Arrow or another library that speaks Arrow's C interface. A data frame
            is read as a CSV file of its content is read.
        y: labels of any type, one for each row; they may also be the column ``options.label`` of ``X``.
        options: how samples are read.
        name: what messages call the samples.

    >>> data, _ = from_arrays([[1.0, 2.0], [3.0, 4.0]], ["no", "yes"])
    >>> data.train.y.tolist(), data.class_names
    ([0, 1], ('no', 'yes'))
    """
    if y is not None and options.label is not None:
        raise UserError(f"labels were given twice, as y and as label={options.label!r}: leave one out.")
    data, preparation = prepare(InMemory(X, y, name), options)
    return _limited(data, options), preparation


def _limited(data: Dataset, options: ReadOptions) -> Dataset:
    return data if options.rows is None else data.draw(options.rows)


def _check_learnable(data: Dataset, source: str | Path, what: str) -> None:
    n = len(data.train)
    if n < 2:
        what = what.replace("rows", "row", 1)
        raise UserError(f"{source} has {n} {what}: learning by contrast needs at least 2.")
    if not varies(data.train.x):
        raise UserError(f"all {n} {what} of {source} are the same: there is nothing to learn from.")
