"""What a run folder says about itself: the record of its data, and the settings that its checkpoints belong to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pinoise.errors import UserError
from pinoise.files import read_sealed, write_sealed

# The settings that a run may change when it goes on: they do not decide what is learned.
MAY_CHANGE = (
    *("training.epochs", "training.device", "training.devices", "training.nodes"),
    "training.strategy",
    *("training.checkpoint_every", "training.wait", "training.patience", "training.min_improvement"),
)

_ABSENT = "absent"


class DataRecord(BaseModel):
    """The rows that a run was trained on, and how to read later data in the same way, as in ``data.json``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    source: str
    rows: Annotated[int, Field(ge=1)]
    shape: list[Annotated[int, Field(ge=1)]]
    fingerprint: str
    feature_names: list[str] | None
    class_names: list[str] | None
    notes: list[str]
    preparation: dict[str, Any]

    @property
    def size(self) -> str:
        """The number and the shape of the rows, in words."""
        return f"{self.rows} rows of {' × '.join(map(str, self.shape))}"


def write_record(path: Path, record: DataRecord) -> None:
    """Write ``data.json`` with its checksum."""
    write_sealed(path, json.loads(record.model_dump_json()))


def read_record(path: Path) -> DataRecord:
    """Read ``data.json``. Refuse one that was altered or that lacks something."""
    values = read_sealed(path)
    try:
        return DataRecord.model_validate(values)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{path} has no sound entry {where!r}: the run folder is damaged.") from None


def forbidden_change(now: str, then: str) -> str | None:
    """Return what differs between settings now and then, both as JSON, if a run cannot go on with it.

    >>> forbidden_change('{"method": {"temperature": 0.2}}', '{"method": {"temperature": 0.5}}')
    'method.temperature is 0.2 in config.yaml and 0.5 in'
    >>> forbidden_change('{"training": {"epochs": 3}}', '{"training": {"epochs": 9}}')
    """
    for path, new, old in _differences(json.loads(now), json.loads(then)):
        holds_out = path == "training.patience" and None in (new, old)  # then the rows that are trained on would change
        if path not in MAY_CHANGE or holds_out:
            return f"{path} is {_said(new)} in config.yaml and {_said(old)} in"
    return None


def _differences(now: Any, then: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(now, Mapping) or not isinstance(then, Mapping):
        if json.dumps(now, sort_keys=True) != json.dumps(then, sort_keys=True):
            yield path, now, then
        return
    for key in [*now, *(key for key in then if key not in now)]:
        yield from _differences(now.get(key, _ABSENT), then.get(key, _ABSENT), f"{path}.{key}" if path else key)


def _said(value: Any) -> str:
    return value if value == _ABSENT else json.dumps(value)
