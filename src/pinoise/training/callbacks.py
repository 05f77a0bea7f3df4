"""Callbacks: what a user hangs into training, to watch it, to stop it, or to log it."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pinoise.choices import LOGGER, find
from pinoise.errors import UserError, brief
from pinoise.training.loop import Interrupted
from pinoise.training.progress import Record

Outcome = Literal["finished", "stopped", "failed"]


class Callback:
    """Follows training, and may end it. Derive from it and override what you need.

    In training over several processes, only the first calls it.

    >>> class LossBelow(Callback):
    ...     def __init__(self, loss: float) -> None:
    ...         self.loss = loss
    ...
    ...     def on_epoch(self, record: Record) -> bool:
    ...         return record.loss < self.loss
    >>> LossBelow(2.0).on_epoch(Record(epoch=1, step=4, loss=1.5, metrics={}, seconds=0.1))
    True
    """

    def on_start(self, settings: Mapping[str, Any]) -> None:
        """Training begins or goes on. ``settings`` are those of the run, as nested plain values."""

    def on_epoch(self, record: Record) -> bool | None:
        """An epoch is done. Return True to end training here: the run is then finished."""

    def on_end(self, outcome: Outcome) -> None:
        """Training has ended: it is ``"finished"``, was ``"stopped"`` by an interrupt, or has ``"failed"``."""


class FunctionCallback(Callback):
    """A function of a record: True ends training."""

    def __init__(self, function: Callable[[Record], bool | None]) -> None:
        self._function = function

    def on_epoch(self, record: Record) -> bool | None:
        """Call the function."""
        return self._function(record)


class LoggerCallback(Callback):
    """A logger with the interface of Lightning Fabric's, which gets the settings once and the metrics of every epoch.

    Training does not fail with it: an error becomes a warning, and the logger hears no more.
    """

    def __init__(self, logger: Any) -> None:
        self._logger: Any | None = logger

    def on_start(self, settings: Mapping[str, Any]) -> None:
        """Log the settings."""
        if hasattr(self._logger, "log_hyperparams"):
            with suppress(NotImplementedError):  # Fabric's CSVLogger has the method and does not do it
                self._try("log_hyperparams", dict(settings))

    def on_epoch(self, record: Record) -> None:
        """Log the loss and what was measured."""
        measured = {name: value for name, value in record.metrics.items() if math.isfinite(value)}
        self._try("log_metrics", {"epoch": float(record.epoch), "loss": record.loss, **measured}, step=record.step)

    def on_end(self, outcome: Outcome) -> None:
        """Let the logger write what it holds, in Lightning's words for how it ended."""
        if hasattr(self._logger, "finalize"):
            self._try("finalize", {"finished": "success", "stopped": "aborted", "failed": "failed"}[outcome])

    def _try(self, method: str, *arguments: Any, **options: Any) -> None:
        if self._logger is None:
            return
        try:
            getattr(self._logger, method)(*arguments, **options)
        except NotImplementedError:
            raise
        except Exception as error:
            name, self._logger = type(self._logger).__name__, None
            warnings.warn(f"logger {name} failed in {method} ({_said(error)}) and is left out now.", stacklevel=2)


def as_callback(value: Any) -> Callback:
    """Return a callback, a logger or a function as a callback.

    >>> as_callback(lambda record: record.loss < 1).on_epoch(Record(1, 4, 0.5, {}, 0.1))
    True
    """
    if isinstance(value, Callback):
        return value
    if callable(getattr(value, "log_metrics", None)) and not inspect.isclass(value):
        return LoggerCallback(value)
    if callable(value) and not inspect.isclass(value):
        return FunctionCallback(value)
    raise UserError(
        f"callbacks has {brief(value)}: give an instance of pinoise.Callback, a logger with log_metrics(metrics, "
        "step), or a function of a record."
    )


class Callbacks:
    """All callbacks of a training, as a context: ``on_start`` at its begin, ``on_end`` at its end.

    An exception in ``on_epoch`` ends training and is kept in ``failure``, so that the state can be saved first. One in
    ``on_end`` becomes a warning.
    """

    def __init__(self, callbacks: Iterable[Any], settings: Mapping[str, Any]) -> None:
        self._all = checked_callbacks(callbacks)
        self._settings = settings
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        for callback in self._all:
            callback.on_start(self._settings)
        return self

    def on_epoch(self, record: Record) -> bool:
        """Tell all callbacks of an epoch. Return whether training should end."""
        try:
            answers = [callback.on_epoch(record) for callback in self._all]
        except Exception as error:
            self.failure = error
            return True
        return any(answer is True for answer in answers)

    def raise_failure(self) -> None:
        """Raise what a callback raised."""
        if self.failure is not None:
            raise self.failure

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        outcome: Outcome = "finished" if error is None else "stopped" if stopped else "failed"
        for callback in self._all:
            try:
                callback.on_end(outcome)
            except Exception as late:
                warnings.warn(f"{type(callback).__name__}.on_end failed ({_said(late)}).", stacklevel=2)


def checked_callbacks(callbacks: Any) -> list[Callback]:
    """Return callbacks of a list. Refuse anything else.

    >>> checked_callbacks(len)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: callbacks is <built-in function len>: give a list of them.
    """
    if isinstance(callbacks, str) or not isinstance(callbacks, Sequence):
        raise UserError(f"callbacks is {brief(callbacks)}: give a list of them.")
    return [as_callback(value) for value in callbacks]


class NamedLogger(LoggerCallback):
    """The logger of a name or an import path, found now and made when training begins.

    A class or function is called to make it. If it takes ``root_dir`` or ``save_dir``, as Lightning's loggers do, that
    is the folder. If it takes ``tracking_uri``, as MLflow's does, that is a database in the folder, unless the
    environment variable ``MLFLOW_TRACKING_URI`` names another.

    Args:
        name: a name, or ``package.module:object``.
        folder: where it writes, if it writes files.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(None)
        self._name, self._folder = name, folder
        self._found = _find_logger(name)
        if not callable(self._found) and not hasattr(self._found, "log_metrics"):
            raise UserError(f"logger {name!r} is of type {type(self._found).__name__}: give {LOGGER.own}.")

    def on_start(self, settings: Mapping[str, Any]) -> None:
        """Make the logger and log the settings."""
        made = self._found
        if inspect.isclass(made) or not hasattr(made, "log_metrics"):
            made = self._made()
        if not callable(getattr(made, "log_metrics", None)):
            raise UserError(f"logger {self._name!r} made {type(made).__name__}: give {LOGGER.own}.")
        self._logger = made
        super().on_start(settings)

    def _made(self) -> Any:
        try:
            taken = inspect.signature(self._found).parameters
            return self._found(**_place(self._folder, taken))
        except Exception as error:  # an absent library, a server that does not answer, a missing argument
            raise UserError(
                f"logger {self._name!r} cannot be made ({_said(error)}): give it what it needs, or a function of your "
                "own that makes it, as in --logger mine:logger."
            ) from error


def _place(folder: Path, taken: Collection[str]) -> dict[str, str]:
    """Return where a logger writes, as the options that it takes, and make the folder."""
    key = next((key for key in ("root_dir", "save_dir") if key in taken), None)
    if key is None:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    if "tracking_uri" not in taken or os.environ.get("MLFLOW_TRACKING_URI"):
        return {key: str(folder)}
    # MLflow refuses its own default, plain files, since version 3.
    whole = folder.resolve()
    return {"tracking_uri": f"sqlite:///{whole / 'mlflow.db'}", "artifact_location": (whole / "artifacts").as_uri()}


def _find_logger(name: str) -> Any:
    try:
        return find(LOGGER, name)
    except UserError as error:
        if name in LOGGER.names and isinstance(error.__cause__, ImportError):
            raise UserError(
                f"logger {name!r} is Lightning's: install it with 'pip install pytorch-lightning {name}'."
            ) from None
        raise
    except Exception as error:  # a library that does not fit the others
        raise UserError(f"logger {name!r} cannot be imported ({_said(error)}): mend that library first.") from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
