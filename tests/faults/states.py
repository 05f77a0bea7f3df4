"""The state of a run folder, as far as it must not depend on what has happened to its processes."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

from tests.faults.commands import Fault

from pinoise.files import LOCK
from pinoise.training.checkpoint import LAST, PREVIOUS, CheckpointContent, DamagedError, read_checkpoint

# Whose bytes are the same; the others have times in them.
BYTES = (
    *("config.yaml", "data.json", "standardizer.safetensors", "encoder.safetensors", "embedding.safetensors"),
    *("noise.safetensors", "classifier.safetensors"),
)


def state(run: Path) -> dict[str, Any]:
    """Return weights, units, settings, log, curves, last checkpoint and names of files of a run, but no times."""
    found: dict[str, Any] = {name: _digest((run / name).read_bytes()) for name in BYTES if (run / name).exists()}
    found["metrics.csv"] = [line.rpartition(",")[0] for line in (run / "metrics.csv").read_text().splitlines()]
    found["tensorboard"] = curves(run)
    found[LAST] = _content(read_checkpoint(run / "checkpoints" / LAST))
    found["files"] = sorted(
        str(path.relative_to(run))
        for path in run.rglob("*")
        if path.is_file() and path.parent.name != "tensorboard" and path.name != LOCK
    )
    return found


def check_same(whole: dict[str, Any], run: Path, *, elsewhere: bool = False) -> None:
    """Refuse a run whose state is not that of an uninterrupted one; ``elsewhere`` if its data has another path."""
    mine = state(run)
    if elsewhere:
        whole, mine = _without_paths(whole), _without_paths(mine)
    differing = sorted(name for name in whole.keys() | mine.keys() if whole.get(name) != mine.get(name))
    if differing:
        name = differing[0]
        raise Fault(f"{run} differs in {', '.join(differing)}: {_first(whole.get(name), mine.get(name))}")


def _without_paths(found: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in found.items() if name not in ("config.yaml", "data.json")}
    return {**kept, LAST: {name: value for name, value in found[LAST].items() if name != "settings"}}


def _first(expected: Any, found: Any) -> str:
    if isinstance(expected, list) and isinstance(found, list):
        pairs = [(a, b) for a, b in zip(expected, found, strict=False) if a != b]
        return f"{len(found)} instead of {len(expected)} entries, first {pairs[:1]}"
    if isinstance(expected, dict) and isinstance(found, dict):
        return f"in {sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))}"
    return f"{str(found)[:80]} instead of {str(expected)[:80]}"


def curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Return what TensorBoard shows: the steps and values of every curve."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it tells of every resume
    board = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    board.Reload()
    return {name: [(event.step, event.value) for event in board.Scalars(name)] for name in board.Tags()["scalars"]}


def _content(stored: CheckpointContent) -> dict[str, str]:
    """Return checksums of a checkpoint's fields, without the seconds that training took."""
    fields = stored._asdict()
    del fields["seconds"]
    fields["history"] = [line[:-1] for line in fields["history"]]
    return {name: _digest(_flat(value)) for name, value in fields.items()}


def _flat(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"".join(f"{name}:".encode() + _flat(value[name]) for name in sorted(value, key=str))
    if hasattr(value, "numpy"):
        return repr((value.dtype, tuple(value.shape))).encode() + bytes(value.contiguous().numpy().tobytes())
    return repr(value).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def newest_step(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 if there is none. A damaged one is a fault: no kill makes one."""
    for path in (run / "checkpoints" / LAST, run / "checkpoints" / PREVIOUS):
        if path.exists():
            try:
                return read_checkpoint(path).step
            except DamagedError as error:
                raise Fault(str(error)) from None
    return 0


def half_written(folder: Path) -> set[tuple[str, int]]:
    """Return the files in a folder that a process did not finish: the path of each, and when it was written to.

    What a killed process leaves stays until a later one tidies up, and checkpoints are all written under one name. So a
    later process has left something only if its path or its time is another.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = Path(place, "partial.ckpt").write_bytes(b"half")
    ...     before = half_written(Path(place))
    ...     _ = Path(place, ".z.0123456789abcdef.part.npy").write_bytes(b"half")
    ...     sorted(name for name, _ in half_written(Path(place)) - before)
    ['.z.0123456789abcdef.part.npy']
    """
    from pinoise.files import replaced_by

    return {
        (str(path.relative_to(folder)), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.name == "partial.ckpt" or replaced_by(path.name) is not None
    }
