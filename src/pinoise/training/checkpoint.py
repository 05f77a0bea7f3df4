"""Checkpoints that survive a kill at any moment: written aside, synced, renamed, and checked before use."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric

from pinoise.errors import UserError

LAST = "last.ckpt"
PREVIOUS = "previous.ckpt"


def save_checkpoint(fabric: Fabric, folder: Path, state: dict[str, Any]) -> None:
    """Write ``last.ckpt``, keeping the one before it as ``previous.ckpt``."""
    partial = folder / "partial.ckpt"
    try:
        fabric.save(partial, state)
    except (OSError, RuntimeError) as error:  # torch's writer raises the latter when a disk is full
        partial.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or "the file could not be written"
        raise UserError(
            f"{folder} cannot take a checkpoint ({reason}): make room and go on by --resume; earlier ones are kept."
        ) from error
    if fabric.is_global_zero:
        sync(partial)
        last = folder / LAST
        if last.exists():
            last.replace(folder / PREVIOUS)
        partial.replace(last)
        sync(folder)
    fabric.barrier()


def find_checkpoint(folder: Path) -> tuple[Path | None, str | None]:
    """Return the newest sound checkpoint, if any, and a sentence about a damaged one that was passed over."""
    damaged = None
    for path in (folder / LAST, folder / PREVIOUS):
        if not path.exists():
            continue
        fault = damage(path)
        if fault is None:
            return path, damaged
        damaged = f"checkpoint {path.name} is damaged ({fault}) and was passed over."
    if damaged is not None:
        raise UserError(f"{folder} holds no sound checkpoint: {damaged} Start the run again in a new folder.")
    return None, None


def damage(path: Path) -> str | None:
    """Say what is wrong with a checkpoint file, None if every record in it matches its checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        return str(error) or type(error).__name__
    return None if bad is None else f"record {bad} does not match its checksum"


def sync(path: Path) -> None:
    """Force a file or folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
