"""A logger of a user's choice, by its name or import path."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pinoise.choices import LOGGER, find
from pinoise.errors import UserError
from pinoise.training.callbacks import LoggerCallback, said


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
                f"logger {self._name!r} cannot be made ({said(error)}): give it what it needs, or a function of your "
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
        raise UserError(f"logger {name!r} cannot be imported ({said(error)}): mend that library first.") from error
