"""What a user may choose about the reading of data, declared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeGuard, get_args

from pinoise.errors import UserError, unknown_choice

MissingPolicy = Literal["median", "mean", "zero", "error"]
"""What fills a missing number of a table, learned from its column; ``error`` refuses missing cells."""

Color = Literal["auto", "gray", "rgb"]
"""Images: in colour if any of them has it (``auto``), always gray, or always in colour."""

Corrupt = Literal["refuse", "skip"]
"""What happens to an image file that cannot be decoded."""

ImageSize = int | tuple[int, int]
"""Height and width, or one number for both."""

Stream = Literal["auto", "always", "never"]
"""Whether the rows of a table are kept on disk once they are encoded: where there are many, or as said."""

LARGEST_SIDE = 16384  # pixels


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a source becomes a data set. Options that a source cannot follow are errors.

    Args:
        label: the column of the labels of a table, by name or number.
        regression: whether the labels are a measurement, whose prediction is scored by R², or classes; None decides by
            their values (``LabelStudy.is_measurement``).
        rows: the most rows to train on, drawn at random but always the same.
        missing: what fills the missing numbers of a table or an array.
        mark_missing: whether a column of numbers with at least 1 % of its cells missing has a feature beside it that
            is 1 where the cell was missing.
        na: values of cells of a table that mean "missing", beside empty, NA, NaN and null.
        categorical: columns of a table whose numbers are names.
        drop: columns of a table to leave out.
        keep: columns of a table to keep although their values name the rows.
        text: columns of a table with free text, whose frequent words become features.
        max_categories: the most values of a text column that become features; the rest share one.
        size: height and width that the images of a folder or of the catalogue are scaled and cropped to; None keeps
            their size, which must then be one.
        color: whether the images of a folder are read in colour.
        corrupt: what happens to images of a folder that cannot be decoded.
        stream: whether the rows of a table are kept on disk, so that memory does not grow with them; ``auto`` does so
            above 1 GB of numbers.

    >>> ReadOptions(size=64).height_and_width
    (64, 64)
    >>> ReadOptions(missing="medain")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown policy for missing values 'medain': did you mean 'median'? \
Allowed: median, mean, zero, error.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    label: str | int | None = None
    regression: bool | None = None
    rows: int | None = None
    missing: MissingPolicy = "median"
    mark_missing: bool = True
    na: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    max_categories: int = 64
    size: ImageSize | None = None
    color: Color = "auto"
    corrupt: Corrupt = "refuse"
    stream: Stream = "auto"

    def __post_init__(self) -> None:
        for kind, value, choices in (
            ("policy for missing values", self.missing, MissingPolicy),
            ("color", self.color, Color),
            ("choice for corrupt images", self.corrupt, Corrupt),
            ("choice for data.stream", self.stream, Stream),
        ):
            if value not in get_args(choices):
                raise unknown_choice(kind, value, get_args(choices))
        if self.rows is not None and self.rows < 2:
            raise UserError(f"rows is {self.rows}: learning by contrast needs at least 2.")
        if self.max_categories < 1:
            raise UserError(f"max_categories is {self.max_categories}: it must be at least 1.")
        if self.size is not None and not is_image_size(self.size):
            allowed = f"height and width, or one number for both, from 1 to {LARGEST_SIDE}"
            raise UserError(f"size is {self.size!r}: it must be {allowed}.")
        for name in ("categorical", "drop", "keep", "text", "na"):
            object.__setattr__(self, name, _column_names(name, getattr(self, name)))
        if isinstance(self.size, list):
            object.__setattr__(self, "size", tuple(self.size))

    @property
    def height_and_width(self) -> tuple[int, int] | None:
        """The size as two numbers."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    def refuse_image_options(self, where: str, *, sized: bool = False) -> None:
        """Raise an error for an option that only a folder of images can follow, or any images that are ``sized``."""
        for name in self._chosen("color", "corrupt", *(() if sized else ("size",))):
            raise UserError(f"{where} is not a folder of images, so {name} cannot apply: leave it out.")

    def refuse_table_options(self, where: str, *, fills_gaps: bool = False) -> None:
        """Raise an error for an option that only a table with named columns can follow, or an array with gaps."""
        gaps = () if fills_gaps else ("missing", "mark_missing")
        for name in self._chosen("label", "categorical", "drop", "keep", "text", "na", "max_categories", *gaps):
            value = getattr(self, name)
            shown = list(value) if isinstance(value, tuple) else value
            raise UserError(f"{where} has no named columns, so {name}={shown} cannot apply: leave it out.")

    def _chosen(self, *names: str) -> list[str]:
        """Return which of these options differ from their default."""
        return [name for name in names if getattr(self, name) != getattr(ReadOptions, name)]


@dataclass(frozen=True, kw_only=True)
class LaterOptions:
    """What may be read otherwise in later data than in training. The run's features stay as they are.

    Args:
        label: the column of the labels where it is not the one that training had; its classes are its own.
        regression: as in ``ReadOptions``, for labels that training did not have.
        corrupt: what happens to images that cannot be decoded; None is what training did.
        stream: as in ``ReadOptions``.

    >>> import pyarrow as pa
    >>> from pinoise.data import from_arrays
    >>> _, preparation = from_arrays(pa.table({"age": [20, 40]}))
    >>> later = preparation.read(pa.table({"age": [30, 31], "kind": ["b", "a"]}), LaterOptions(label="kind"))
    >>> later.train.x.tolist(), later.class_names
    ([[30.0], [31.0]], ('a', 'b'))
    """

    label: str | int | None = None
    regression: bool | None = None
    corrupt: Corrupt | None = None
    stream: Stream = ReadOptions.stream

    def as_read_options(self) -> ReadOptions:
        """Return these options with the defaults of all others."""
        return ReadOptions(**{name: value for name, value in vars(self).items() if value is not None})


def is_image_size(value: object) -> TypeGuard[ImageSize]:
    """Whether this is one or two sides in the allowed range.

    >>> is_image_size(64), is_image_size((48, 64)), is_image_size(0), is_image_size("64")
    (True, True, False, False)
    """
    sides = tuple(value) if isinstance(value, tuple | list) else (value, value)
    return len(sides) == 2 and all(
        isinstance(side, int) and not isinstance(side, bool) and 1 <= side <= LARGEST_SIDE for side in sides
    )


def _column_names(option: str, columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str) or not all(isinstance(column, str) for column in columns):
        what = "cell values" if option == "na" else "column names"
        raise UserError(f"{option} is {columns!r}: it must be a list of {what}.")
    return tuple(columns)


DEFAULTS = ReadOptions()
"""The options of a user who chooses nothing."""

AS_TRAINED = LaterOptions()
"""Later data is read exactly as the training data was."""
