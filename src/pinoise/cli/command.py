"""The command from its first moment to its last: a user's mistake is one sentence and exit code 2, Ctrl-C is 130."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

from pinoise.cli.console import leave, listening
from pinoise.training.processes import STOPPED


def main() -> None:
    """Run the command."""
    with listening() as interrupts:
        interrupts.starting = True
        try:
            code = _run_verb(interrupts)
        except SystemExit:
            raise
        except BaseException as error:
            if not interrupts.leaving and not isinstance(error, KeyboardInterrupt):
                raise
            eval("0")  # clears the mark of an interrupt in an ``eval``, for which Python would end itself by a signal
            leave("stopped", STOPPED)
    if code:
        sys.exit(code)


def _run_verb(interrupts: Any) -> int:
    """Run the verb that the arguments name, and return its exit code."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch's hints on DDP are for its developers
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a σ must not stop a run whose output goes to an old code page
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:  # in which torch cannot be loaded either
        leave("pinoise: the current folder does not exist any more: change to another one.", 2)

    from pinoise.choices import OWN_MODULES
    from pinoise.cli.app import app
    from pinoise.cli.console import warnings_as_notes
    from pinoise.cli.options import UsageError, call
    from pinoise.errors import UserError
    from pinoise.training.processes import LostProcessError

    # A user's module (--encoder mine:Net) is found in the current folder, as by ``python -m pinoise``. The folder comes
    # last on the path, so that a file there cannot stand in for a library.
    OWN_MODULES[:] = [""]
    interrupts.starting = False
    try:
        try:
            with warnings_as_notes():
                code = call(app, sys.argv[1:])
            sys.stdout.flush()
        except Exception:
            if interrupts.leaving:  # libraries turn an interrupt into errors of their own
                raise KeyboardInterrupt from None
            raise
    except UserError as error:
        leave(f"pinoise: {error}", 2, lost=isinstance(error, LostProcessError))
    except UsageError as error:
        leave(_usage_sentence(error), 2)
    except BrokenPipeError:
        # The reader of our output went away: leave quietly, and keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and error.filename is None:  # what is printed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            leave(f"pinoise: the output cannot be written ({error.strerror}): free some space or send it elsewhere.", 2)
        if error.filename is None:
            raise
        leave(f"pinoise: {error.filename}: {error.strerror}.", 2)
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        leave("pinoise: this needs more memory than there is: use fewer rows, a smaller batch or smaller networks.", 2)
    return code


def _open_closed_streams() -> None:
    """Open the streams that the caller closed, so that no file of ours takes the place of one and gets its text."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out; torch says so in an error of another kind."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "out of memory" in str(error)


def _usage_sentence(error: Any) -> str:
    message = str(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    if not message or context is None:  # the help was printed instead
        return f"pinoise: {message}" if message else ""
    return f"pinoise: {message}; '{context.command_path} --help' lists what is allowed."
