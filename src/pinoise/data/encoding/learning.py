"""What is learned from the columns of a training table."""

from __future__ import annotations

from collections.abc import Sequence

from pinoise.data.encoding.labels import LabelEncoding, learn_targets, measurement_note
from pinoise.data.encoding.studies import Learned, Study, study_of
from pinoise.data.encoding.tables import TableEncoding, column_names, find_column, label_column, study_labels
from pinoise.data.formats.raw import Table
from pinoise.data.messages import counted, listed
from pinoise.data.options import ReadOptions
from pinoise.errors import UserError, rows_before


def learn_table(raw: Table, options: ReadOptions, *, where: str) -> tuple[TableEncoding, tuple[str, ...]]:
    """Return the encoding of a training table, and notes on every choice that was made.

    Numbers stay numbers. Text and truth values become categories, and so do the numbers of the columns that
    ``options.categorical`` names. Dates become days and cycles, and the columns that ``options.text`` names TF-IDF of
    their words.

    >>> import pyarrow as pa
    >>> from pinoise.data.formats.raw import RawTable
    >>> raw = RawTable(pa.table({"a": [1.0, 2.0], "b": [7, 7], "c": [None, None]}))
    >>> learn_table(raw, ReadOptions(), where="a.csv")[1]
    ('dropped 1 column without any value: c', '1 column is constant: b')
    """
    names = column_names(raw, where=where)
    if raw.rows == 0:
        raise UserError(f"{where} has no rows.")
    dropped = [find_column(name, names, where=where) for name in options.drop]
    for name in (*options.categorical, *options.text, *options.keep):
        find_column(name, names, where=where)
    label, labels = _learn_label(raw, options, names, where)
    left_out = {label, *dropped}
    begun = {name: study_of(name, raw.kind_of(name), options, where) for name in names if name not in left_out}
    found = studied(raw, begun)
    dropped += [name for name, learned in found.items() if learned.column is None]
    columns = tuple(learned.column for learned in found.values() if learned.column is not None)
    notes = _notes(found)
    if not columns:
        raise UserError(f"{where} has no feature column left: {'; '.join(notes) or 'it holds only the label'}.")
    notes += [] if options.regression else measurement_note(labels, label)
    return TableEncoding(columns, label, labels, tuple(dropped), options.missing), tuple(notes)


def studied(raw: Table, begun: dict[str, Study | Learned]) -> dict[str, Learned]:
    """Return what is learned of every column, in as many passes over the table as the studies ask for."""
    found = dict(begun)
    while studies := {name: study for name, study in found.items() if isinstance(study, Study)}:
        for first, piece in raw.pieces(list(studies)):
            with rows_before(first):
                for name, study in studies.items():
                    study.add(piece.column(name))
        found |= {name: study.learned() for name, study in studies.items() if not study.again()}
    return {name: learned for name, learned in found.items() if isinstance(learned, Learned)}


def _learn_label(
    raw: Table, options: ReadOptions, names: Sequence[str], where: str
) -> tuple[str | None, LabelEncoding | None]:
    """Return the label's column, if labels are in the table, and their encoding, if there are any."""
    if options.label is not None:
        column = find_column(options.label, names, where=where)
        study = study_labels(raw, column, where=where)
        return column, study.learned(where=label_column(column, where), regression=options.regression)
    if raw.y is None:
        return None, None
    return None, learn_targets(raw.y, where=f"{where}, y", regression=options.regression)


def _notes(found: dict[str, Learned]) -> list[str]:
    notes = [note for learned in found.values() for note in learned.notes]

    if as_numbers := [name for name, learned in found.items() if learned.as_numbers]:
        notes.append(f"read the text of {counted(len(as_numbers), 'column')} as numbers: {listed(as_numbers)}")
    if empty := [name for name, learned in found.items() if learned.empty]:
        notes.append(f"dropped {counted(len(empty), 'column')} without any value: {listed(empty)}")
    if constant := [name for name, learned in found.items() if learned.constant]:
        verb = "is" if len(constant) == 1 else "are"
        notes.append(f"{counted(len(constant), 'column')} {verb} constant: {listed(constant)}")
    return notes
