"""From the name of a file or folder to a data set, whatever the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pinoise.data.dataset import Dataset
from pinoise.data.formats.arrays import read_npy, read_npz
from pinoise.data.formats.extensions import COMPRESSED, existing_path, file_format
from pinoise.data.formats.idx import read_idx_samples
from pinoise.data.formats.published import published_reader
from pinoise.data.formats.raw import RawArrays
from pinoise.data.formats.svmlight import read_svmlight
from pinoise.data.formats.tables import TableFile, read_csv, read_parquet
from pinoise.data.images.options import Color, Corrupt, ImageOptions, ImageSize, refuse_image_options
from pinoise.data.images.reading import read_image_folder
from pinoise.data.preparation.arrays import ArrayPreparation, learn_arrays
from pinoise.data.preparation.images import ImagePreparation, learn_images
from pinoise.data.preparation.kinds import Preparation, image_preparation, refuse_table_options, wrong_kind
from pinoise.data.preparation.learning import MAX_CATEGORIES, learn_table
from pinoise.data.preparation.tables import MissingPolicy, TablePreparation, prepared_table
from pinoise.errors import UserError


def read_file(
    path: str | Path,
    *,
    test: str | Path | None = None,
    label: str | int | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: MissingPolicy = "median",
    max_categories: int = MAX_CATEGORIES,
    size: ImageSize | None = None,
    color: Color = "auto",
    corrupt: Corrupt = "refuse",
    cache: str | Path | None = None,
    progress: bool = False,
) -> tuple[Dataset, Preparation]:
    """Read a training file or folder, and return it with the preparation that reads later ones the same way.

    CSV and Parquet: numbers are features, text and truth values become one feature ``column=value`` for each of
    their values, and so do the columns in ``categorical``. The columns in ``drop`` are left out. Missing numbers
    are filled as ``missing`` says; a missing category is a category of its own. A text column with more than
    ``max_categories`` values keeps the frequent ones, or is dropped where nearly all its values differ. What was
    done is told in the data set's notes. ``label`` is a column's name or number.

    ``.npz`` holds ``X_train, y_train, X_test, y_test``, or ``X, y``, or one array, or a sparse matrix. ``.npy`` is
    not read into memory. Text with ``index:value`` pairs is svmlight's format. IDX files are those of MNIST.

    A folder holds images: directly, or in subfolders that are their classes, or in ``train`` and ``test`` or ``val``
    with either. ``size`` is the height and width, or one number for both, that images are scaled and cropped to.
    ``color`` is ``gray``, ``rgb``, or ``auto`` for colour where any image has it. ``corrupt`` files are refused by
    name, or with ``skip`` left out and counted in a note. Images are decoded whenever they are asked for, unless
    ``cache`` names a folder where they are kept decoded. ``progress`` shows bars meanwhile. A folder with the unpacked
    files of MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 or STL-10 is read as such.

    ``test`` is a second file, read as the first one, that becomes the test part.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,town,class\\n20,Rome,a\\n,Oslo,b\\n40,Rome,a\\n")
    ...     data, preparation = read_file(path, label="class")
    >>> data.feature_names, data.notes
    (('age', 'town=Oslo', 'town=Rome'), ('filled 1 missing value in 1 column with its median: age',))
    """
    path = existing_path(path)
    data: Dataset
    preparation: Preparation
    if not _is_image_folder(path):
        refuse_image_options(size, color, corrupt, cache, where=str(path))
    if _is_table(path):
        file = _read_table(path, text=categorical)
        preparation, notes = learn_table(
            file.table,
            label=label,
            categorical=categorical,
            drop=drop,
            missing=missing,
            max_categories=max_categories,
            where=str(path),
        )
        data = prepared_table(file.table, preparation, name=_stem(path), where=str(path), notes=(*file.notes, *notes))
    elif _is_image_folder(path):
        refuse_table_options(categorical, drop, where=str(path))
        if label is not None:
            raise UserError(
                f"{path} is a folder of images, whose subfolders are the classes: leave out label={label!r}."
            )
        options = ImageOptions.checked(size=size, color=color, corrupt=corrupt)
        content = read_image_folder(path, options, cache=None if cache is None else Path(cache), progress=progress)
        data, preparation = learn_images(content, options, name=_stem(path), where=str(path))
    else:
        refuse_table_options(categorical, drop, where=str(path))
        data, preparation = learn_arrays(_read_arrays(path), name=_stem(path), where=str(path), label=label)
    if test is None:
        return data, preparation
    if data.test is not None:
        raise UserError(f"{path} brings its own test part, so the test file {test} has no place: leave it out.")
    held_out = read_prepared(test, preparation)
    if preparation.labels is not None and held_out.train.y is None:
        raise UserError(f"the test file {test} has no labels, but {path} has.")
    told = tuple(f"{Path(test).name}: {note}" for note in held_out.notes)
    return replace(data, test=held_out.train, notes=data.notes + told), preparation


def read_prepared(
    path: str | Path,
    preparation: Preparation,
    *,
    labelled: bool = True,
    own_classes: bool = False,
    cache: str | Path | None = None,
    progress: bool = False,
) -> Dataset:
    """Read a later file or folder exactly as the training one was read.

    Its labels may be absent; ``labelled=False`` leaves them unread, whatever they are. Labels that training did not
    have are an error, unless ``own_classes`` says that those of arrays and of folders are to be read for what they are.
    ``cache`` and ``progress`` are those of ``read_file``.
    """
    path = existing_path(path)
    if _is_image_folder(path):
        images = image_preparation(preparation, str(path))
        kept = None if cache is None else Path(cache)
        content = read_image_folder(path, images.options, cache=kept, progress=progress)
        return images.apply(content, name=_stem(path), labelled=labelled, own_classes=own_classes, where=str(path))
    if _is_table(path) != isinstance(preparation, TablePreparation):
        raise wrong_kind(preparation, str(path))
    if isinstance(preparation, ImagePreparation):
        preparation = preparation.arrays
    if isinstance(preparation, ArrayPreparation):
        raw = _read_arrays(path, preparation)
        return preparation.apply(raw, name=_stem(path), labelled=labelled, own_classes=own_classes, where=str(path))
    file = _read_table(path, text=preparation.text_columns)
    return prepared_table(
        file.table, preparation, name=_stem(path), where=str(path), labelled=labelled, notes=file.notes
    )


def _is_table(path: Path) -> bool:
    return not path.is_dir() and file_format(path) in ("csv", "parquet")


def _is_image_folder(path: Path) -> bool:
    return path.is_dir() and published_reader(path) is None


def _read_table(path: Path, *, text: Sequence[str]) -> TableFile:
    return read_parquet(path) if file_format(path) == "parquet" else read_csv(path, text=text)


def _read_arrays(path: Path, preparation: ArrayPreparation | None = None) -> RawArrays:
    published = published_reader(path)
    if published is not None:
        return published(path)
    match file_format(path):
        case "idx":
            return read_idx_samples(path)
        case "npy":
            return read_npy(path)
        case "npz":
            return read_npz(path)
        case _:
            if preparation is None:
                return read_svmlight(path)
            return read_svmlight(path, n_features=preparation.shape[0], first_index=preparation.first_index)


def _stem(path: Path) -> str:
    """Return a file's name without its extensions, or a folder's name."""
    if path.is_dir():
        return path.resolve().name
    inner = path.stem if path.suffix.lower() in COMPRESSED else path.name
    return Path(inner).stem if Path(inner).suffix != ".t" else inner
