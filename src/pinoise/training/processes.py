"""Which of the processes that train together this one is, as torch's own variables say. Nothing here imports torch.

Schedulers leave variables such as LOCAL_RANK in every shell that they start. They count only beside the mark of a
launcher that started this process: torchrun, the command itself by torch's elastic agent, Ray Train, or srun.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pinoise.errors import UserError, brief

MARK = "TORCHELASTIC_RUN_ID"  # set in every process of a group
AGENT = "PINOISE_AGENT"  # the process of the command whose agent started this one
_LAST_SECONDS = 30  # to save and stop, as torch's agent gives
STOPPED = 130  # the exit code of a command that was interrupted
_WORD = "TORCHELASTIC_ERROR_FILE"  # where torch's agent looks for the reason of a process's end
_VARIABLES = (MARK, "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT")


class LostProcessError(UserError):
    """Another process of the group ended. Every process that is left says so: the first may be the one that ended."""


class Group(NamedTuple):
    """The processes that train together, and which of them this one is."""

    rank: int
    local_rank: int  # its number on its machine
    size: int
    per_node: int


ALONE = Group(0, 0, 1, 1)


def find_group(environ: Mapping[str, str] = os.environ) -> Group:
    """Return the group of this process.

    >>> find_group({"LOCAL_RANK": "1", "SLURM_NTASKS": "4"})  # left over from elsewhere
    Group(rank=0, local_rank=0, size=1, per_node=1)
    """
    if not all(name in environ for name in _VARIABLES):
        return ALONE
    size, per_node = (_number(environ, name, least=1) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    return Group(_number(environ, "RANK"), _number(environ, "LOCAL_RANK"), size, per_node)


def is_first(*, of_node: bool = False, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the first of its group, or of its machine.

    >>> is_first(environ={"RANK": "1", "LOCAL_RANK": "1", "SLURM_PROCID": "1"})
    True
    """
    grouped = all(name in environ for name in _VARIABLES)
    return not grouped or environ["LOCAL_RANK" if of_node else "RANK"].strip() == "0"


def is_restarted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started this process in the place of one that failed, so that a run goes on.

    >>> is_restarted({"TORCHELASTIC_RESTART_COUNT": "1"})  # of which group?
    False
    """
    return find_group(environ) is not ALONE and environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


def adopt_srun(devices: int, nodes: int, environ: MutableMapping[str, str] = os.environ) -> None:
    """Give torch's variables to a process that srun started as one of several. Others stay as they are.

    Args:
        devices: the processes on a machine, in the settings.
        nodes: the machines, in the settings.
        environ: the environment variables.

    >>> process = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "7"}
    >>> adopt_srun(2, 1, process)
    >>> find_group(process), process["MASTER_PORT"]
    (Group(rank=1, local_rank=1, size=2, per_node=2), '15007')
    """
    size = devices * nodes
    if size == 1 or find_group(environ) is not ALONE or environ.get("SLURM_STEP_NUM_TASKS", "1") == "1":
        return
    tasks = _number(environ, "SLURM_STEP_NUM_TASKS", least=1)
    machines = _number({"SLURM_STEP_NUM_NODES": "1", **environ}, "SLURM_STEP_NUM_NODES", least=1)
    if (tasks, machines) != (size, nodes):
        raise UserError(
            f"srun started {tasks} processes on {machines} node(s), but training.devices is {devices} and "
            f"training.nodes is {nodes}: give srun --nodes={nodes} --ntasks={size} --ntasks-per-node={devices}, or "
            "change the settings."
        )
    listed = environ.get("SLURM_STEP_NODELIST", environ.get("SLURM_NODELIST", "127.0.0.1"))
    name, number = re.match(r"([^,\[ ]*)(?:\[([^],-]*))?", listed).groups()  # type: ignore[union-attr]
    job = re.sub(r"\D", "", environ.get("SLURM_JOB_ID", ""))[-4:]
    environ.update(
        {
            "MASTER_ADDR": environ.get("MASTER_ADDR", f"{name}{number or ''}"),
            "MASTER_PORT": environ.get("MASTER_PORT", str(15000 + int(job or 0))),
            "RANK": str(_number(environ, "SLURM_PROCID")),
            "LOCAL_RANK": str(_number(environ, "SLURM_LOCALID")),
            "WORLD_SIZE": str(tasks),
            "LOCAL_WORLD_SIZE": str(devices),
            MARK: "srun",
        }
    )


def end_with_command(environ: Mapping[str, str] = os.environ) -> None:
    """Stop this process if the command that started it is killed, and end it if it does not stop. Only on POSIX.

    >>> end_with_command({})  # nothing to do for a process that no command of ours started
    """
    if AGENT not in environ or find_group(environ) is ALONE or os.name != "posix":
        return

    def wait() -> None:
        while os.getppid() == int(environ[AGENT]):
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)  # as torch's agent would, and then
        time.sleep(_LAST_SECONDS)
        os._exit(1)

    threading.Thread(target=wait, name="pinoise-command", daemon=True).start()


def leave_word(sentence: str, code: int, *, lost: bool, environ: Mapping[str, str] = os.environ) -> bool:
    """Leave the sentence with which this process ends to the command that started it, which says one for all.

    Return whether there is such a command.

    Args:
        sentence: why the process ends.
        code: its exit code.
        lost: whether it ends because another one has.
        environ: the environment variables.

    >>> leave_word("no such file", 2, lost=False, environ={})
    False
    """
    if AGENT not in environ or _WORD not in environ:
        return False
    word = {"message": sentence, "timestamp": int(time.time()), "code": code, "lost": lost}
    with suppress(OSError):  # the command and its folder may be gone
        Path(environ[_WORD]).write_text(json.dumps(word), encoding="utf-8")
    return True


def from_checkpoint(command: str) -> str:
    """Return how training goes on.

    >>> from_checkpoint("pinoise train --resume runs/mine")
    'go on from the last checkpoint with: pinoise train --resume runs/mine'
    """
    return f"go on from the last checkpoint with: {command}"


def _number(environ: Mapping[str, str], name: str, *, least: int = 0) -> int:
    text = environ.get(name, "")
    if not re.fullmatch(r"\s*\d{1,7}\s*", text, flags=re.ASCII) or int(text) < least:
        raise UserError(f"the environment variable {name} is {brief(text)}: it must be a whole number from {least}.")
    return int(text)
