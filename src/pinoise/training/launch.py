"""Several processes of the command, started by torch's elastic agent, which meets, restarts and ends them."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import distributed

from pinoise.errors import UserError
from pinoise.training.config import TrainingSettings
from pinoise.training.processes import AGENT, STOPPED, from_checkpoint

_LOCALHOST = "127.0.0.1"


class Launch(NamedTuple):
    """What is started.

    Args:
        arguments: of the command that every process runs.
        settings: with the processes on a machine and the machines.
        rendezvous: where several machines meet, as HOST:PORT of one of them.
        max_restarts: how often all processes are started again if one fails.
        run: the run folder.
        again: the command that goes on with it.
    """

    arguments: Sequence[str]
    settings: TrainingSettings
    rendezvous: str | None
    max_restarts: int
    run: Path
    again: str

    @property
    def go_on(self) -> str:
        """How training goes on after a failure."""
        begun = (self.run / "config.yaml").exists()
        return from_checkpoint(self.again) if begun else "give the command again"


class StoppedError(Exception):
    """The processes stopped on request. The message says how far they came, or is empty."""


def launch(asked: Launch) -> None:
    """Run the command in several processes until all end.

    Their output is that of the command. A failure of theirs is one ``UserError``, a stop ``StoppedError``.
    """
    if not distributed.is_available():
        raise UserError("several processes were asked for, but this build of torch trains in one: start one.")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous import RendezvousError
    from torch.distributed.launcher.api import elastic_launch

    # Not from the current folder if this command was not, where a file could stand in for a library.
    safe = ["-P"] if sys.modules["__main__"].__spec__ is None else []
    with TemporaryDirectory(prefix="pinoise-") as folder, _environment(asked.settings):
        try:
            elastic_launch(_config(asked, folder), sys.executable)(*safe, "-m", "pinoise", *asked.arguments)
        except SignalException:
            raise StoppedError(_last_word(folder)) from None
        except ChildFailedError as error:
            raise UserError(cause(error.failures, asked)) from None
        except RendezvousError:
            raise UserError(
                f"{asked.settings.nodes} machines did not meet at {asked.rendezvous} in {asked.settings.wait} s: start "
                "the command on all of them in time, or raise training.wait."
            ) from None
        if word := _last_word(folder):  # a process was asked to stop, and not this one
            raise StoppedError(word)


def _config(asked: Launch, folder: str) -> Any:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    nodes, where = asked.settings.nodes, asked.rendezvous
    if nodes > 1 and where is None:
        raise UserError(
            f"--nodes {nodes} needs --rendezvous HOST:PORT, the address of one of the machines and a free port of it: "
            "give the same command on every machine, or start it with torchrun or srun."
        )
    local = nodes == 1 or str(where).partition(":")[0] in ("localhost", _LOCALHOST)
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=asked.settings.devices,
        logs_specs=DefaultLogsSpecs(log_dir=folder),
        run_id="pinoise",
        rdzv_endpoint=f"{_LOCALHOST}:0" if where is None else where,
        rdzv_backend="c10d",
        rdzv_configs={"join_timeout": asked.settings.wait, "read_timeout": asked.settings.wait},
        max_restarts=asked.max_restarts,
        local_addr=_LOCALHOST if local else None,
    )
    heard = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    heard = [name for name in heard if signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN]  # as under nohup
    config.signals_to_handle = ",".join(heard)
    return config


@contextmanager
def _environment(settings: TrainingSettings) -> Iterator[None]:
    """Let the processes know who started them, and share the threads among them. The agent's log stays quiet."""
    given = {AGENT: str(os.getpid())}
    if "OMP_NUM_THREADS" not in os.environ:
        given["OMP_NUM_THREADS"] = str(max(1, torch.get_num_threads() // settings.devices))
    os.environ.update(given)
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        for name in given:
            del os.environ[name]


def _last_word(folder: str) -> str:
    """Return what a process of the last start said when it was asked to stop, or nothing."""
    starts = sorted(Path(folder).glob("*/attempt_*"), key=lambda start: int(start.name.rpartition("_")[2]))
    words = [json.loads(path.read_text(encoding="utf-8")) for start in starts[-1:] for path in start.glob("*/*.json")]
    return max((word["message"] for word in words if word["code"] == STOPPED), key=len, default="")


def cause(failures: Mapping[int, Any], asked: Launch) -> str:
    """Return the sentence on processes that failed: what one of them said, or which of them ended.

    One that ended because another did comes last.

    Args:
        failures: torch's ``ProcessFailure`` of each, by its rank.
        asked: what was started.
    """
    told = [failure.error_file_data for failure in failures.values() if "code" in failure.error_file_data]
    for word in told:
        if word["code"] != STOPPED and not word["lost"]:
            return str(word["message"])
    size = asked.settings.devices * asked.settings.nodes
    for rank, failure in failures.items():
        if "code" not in failure.error_file_data and failure.exitcode != -signal.SIGTERM:
            killed, code = f"was killed by {failure.signal_name()}", f"ended with code {failure.exitcode}"
            how = killed if failure.exitcode < 0 else code
            return f"rank {rank} (process {failure.pid}), one of {size} processes, {how}; {asked.go_on}"
    return str(told[0]["message"]) if told else f"one of {size} processes was ended; {asked.go_on}"
