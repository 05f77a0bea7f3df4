"""When a source is read in pieces: a rule that depends on the source alone, so that every machine decides alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet

from pinoise.data.formats.extensions import COMPRESSED
from pinoise.data.messages import damage_named
from pinoise.data.options import Stream
from pinoise.data.source import Source
from pinoise.errors import UserError

STREAM_BYTES = 10**9
"""Numbers in double precision, or text, above which a source is read in pieces."""

_UNPACKED = 4  # bytes of text in a byte of a compressed file, about
_STREAMED = ("csv", "parquet")
_READ_BY_ROWS = ("npy",)  # in any case


def streams(source: Source, stream: Stream) -> bool:
    """Whether a source is read in pieces.

    >>> from pinoise.data.source import find_source
    >>> streams(find_source("digits"), "auto")
    False
    """
    if stream == "never" or source.file_format not in _STREAMED:
        return False
    return stream == "always" or size_in_memory(source) > STREAM_BYTES


def check_streamable(source: Source, stream: Stream) -> None:
    """Refuse ``always`` for a source that is only read whole."""
    by_rows = source.kind == "images" or source.file_format in (*_STREAMED, *_READ_BY_ROWS)
    if stream == "always" and not by_rows:
        raise UserError(f"{source.where} cannot be read in pieces, so stream='always' cannot apply: leave it out.")


def size_in_memory(source: Source) -> int:
    """Return the bytes that the numbers of Parquet files take in double precision, or those of a file of text."""
    if source.file_format != "parquet":
        size = source.path.stat().st_size
        return size * _UNPACKED if source.path.suffix.lower() in COMPRESSED else size
    cells = 0
    for file in source.files:
        with damage_named(file, (OSError, pa.ArrowException)):
            about = pyarrow.parquet.read_metadata(file)
        cells += about.num_rows * about.num_columns
    return 8 * cells
