"""The processes that train together: this one alone, those that it starts, or those of torchrun or srun.

Schedulers leave variables such as LOCAL_RANK in every shell that they start. A variable counts here only if the
launcher that it belongs to started this process. Nothing here imports torch.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Literal, NamedTuple

from pinoise.choices import listed
from pinoise.errors import UserError, brief

RAY_MARK = "PINOISE_ON_RAY"  # set in a process that Ray Train started
OURS = "PINOISE_PROCESS"  # "parent:rank:local rank:port", the mark of a process in a group
LATER = "pinoise-later"  # python -X pinoise-later: a process that the parent in its mark started; it is not inherited

_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT")
SIGNS = (OURS, "WORLD_SIZE")  # a process without both is alone, unless the settings ask for others
_LOCALHOST = "127.0.0.1"


class LostProcessError(UserError):
    """Another process of the group ended. Every process that is left says so: the first may be the one that ended."""


class Group(NamedTuple):
    """The processes that train together, and which of them this one is."""

    rank: int
    per_node: int
    nodes: int
    address: str = _LOCALHOST
    port: int = 0  # 0 is any free one
    launcher: Literal["pinoise", "torchrun", "srun", "ray"] = "pinoise"

    @property
    def has_met(self) -> bool:
        """Whether the launcher has brought the processes together already."""
        return self.launcher in ("torchrun", "ray")

    @property
    def size(self) -> int:
        """The number of processes."""
        return self.per_node * self.nodes

    @property
    def local_rank(self) -> int:
        """The number of this process on its node."""
        return self.rank % self.per_node

    @property
    def node(self) -> int:
        """The number of this process's node."""
        return self.rank // self.per_node


ALONE = Group(0, 1, 1)


def find_group(
    devices: int, nodes: int, *, environ: Mapping[str, str] = os.environ, parent: int | None = None
) -> Group:
    """Return the group of this process. The number of processes is torchrun's, or else that of the settings.

    Args:
        devices: the processes on a node, in the settings.
        nodes: the nodes, in the settings.
        environ: the environment variables.
        parent: the process that started this one; the system's answer if None.

    >>> find_group(2, 1, environ={"LOCAL_RANK": "1", "SLURM_NTASKS": "4"})  # left over from elsewhere
    Group(rank=0, per_node=2, nodes=1, address='127.0.0.1', port=0, launcher='pinoise')
    """
    if (launcher := _launcher(environ)) is not None:
        return _group_of_launcher(environ, launcher)
    asked = Group(0, devices, nodes)
    if asked.size == 1:
        return asked
    if "SLURM_STEP_NUM_TASKS" in environ and _number(environ, "SLURM_STEP_NUM_TASKS", "srun", least=1) > 1:
        return _group_of_srun(asked, environ)
    started = _mark_of(environ, parent)
    if nodes > 1:
        return _group_by_hand(asked, environ, started)
    return asked if started is None else asked._replace(rank=started.rank, port=started.port)


def is_first(*, of_node: bool = False, environ: Mapping[str, str] = os.environ, parent: int | None = None) -> bool:
    """Whether this process is the first of its group, or of its node. Only one that a launcher started can be later.

    >>> is_first(environ={"RANK": "1", "LOCAL_RANK": "1", "SLURM_PROCID": "1"})
    True
    >>> is_first(environ={"PINOISE_PROCESS": "77:1:1:0"}, parent=77)
    False
    """
    if (started := _mark_of(environ, parent)) is not None:
        return started.local_rank == 0 if of_node else started.rank == 0
    return _launcher(environ) is None or environ["LOCAL_RANK" if of_node else "RANK"].strip() == "0"


class Mark(NamedTuple):
    """What a process knows of its place in a group before it joins it."""

    parent: int
    rank: int
    local_rank: int
    port: int


def mark(group: Group, *, parent: int) -> dict[str, str]:
    """Return the variable by which a process is known to be in a group. It holds for a child of ``parent`` alone.

    >>> mark(Group(1, 2, 1, port=2000), parent=77)
    {'PINOISE_PROCESS': '77:1:1:2000'}
    """
    return {OURS: f"{parent}:{group.rank}:{group.local_rank}:{group.port}"}


def _mark_of(environ: Mapping[str, str], parent: int | None) -> Mark | None:
    """Return the mark of this process, unless it was made for its parent. The process that made it may have ended."""
    found = re.fullmatch(r"(\d{1,20}):(\d{1,9}):(\d{1,9}):(\d{1,5})", environ.get(OURS, ""))
    if found is None:
        return None
    # A virtual environment of Windows puts a process of its own between the two.
    known = os.name == "nt" or LATER in sys._xoptions or int(found[1]) == (os.getppid() if parent is None else parent)
    return Mark(*map(int, found.groups())) if known else None


def is_left(*, environ: Mapping[str, str] = os.environ, parent: int | None = None) -> bool:
    """Whether the process of the group that started this one has ended.

    >>> is_left()
    False
    """
    started = _mark_of(environ, parent) if LATER in sys._xoptions and os.name != "nt" else None
    return started is not None and started.parent != (os.getppid() if parent is None else parent)


def _launcher(environ: Mapping[str, str]) -> Literal["torchrun", "ray"] | None:
    """Return the launcher that has given this process its rank in torch's own variables, if any."""
    if not all(name in environ for name in _VARIABLES):
        return None
    if RAY_MARK in environ:
        return "ray"
    return "torchrun" if "TORCHELASTIC_RUN_ID" in environ else None


def _group_of_launcher(environ: Mapping[str, str], launcher: Literal["torchrun", "ray"]) -> Group:
    size, per_node = (_number(environ, name, launcher, least=1) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    rank, local = (_number(environ, name, launcher) for name in ("RANK", "LOCAL_RANK"))
    if size % per_node or rank >= size or rank % per_node != local:
        raise UserError(
            f"{launcher}'s variables contradict each other: RANK is {rank}, LOCAL_RANK {local}, WORLD_SIZE {size} and "
            f"LOCAL_WORLD_SIZE {per_node}; start the same number of processes on every node."
        )
    address, port = environ.get("MASTER_ADDR", _LOCALHOST), _number(environ, "MASTER_PORT", launcher, most=65535)
    return Group(rank, per_node, size // per_node, address, port, launcher)


def _group_of_srun(asked: Group, environ: Mapping[str, str]) -> Group:
    tasks = _number(environ, "SLURM_STEP_NUM_TASKS", "srun", least=1)
    nodes = _number({"SLURM_STEP_NUM_NODES": "1", **environ}, "SLURM_STEP_NUM_NODES", "srun", least=1)
    rank, local = (_number(environ, name, "srun") for name in ("SLURM_PROCID", "SLURM_LOCALID"))
    if (tasks, nodes) != (asked.size, asked.nodes) or rank % asked.per_node != local:
        raise UserError(
            f"srun started {tasks} processes on {nodes} node(s), but training.devices is {asked.per_node} and "
            f"training.nodes is {asked.nodes}: give srun --nodes={asked.nodes} --ntasks={asked.size} "
            f"--ntasks-per-node={asked.per_node}, or change the settings."
        )
    listed = environ.get("SLURM_STEP_NODELIST", environ.get("SLURM_NODELIST", _LOCALHOST))
    name, number = re.match(r"([^,\[ ]*)(?:\[([^],-]*))?", listed).groups()  # type: ignore[union-attr]
    job = re.sub(r"\D", "", environ.get("SLURM_JOB_ID", ""))[-4:]
    usual = {"MASTER_ADDR": f"{name}{number or ''}", "MASTER_PORT": str(15000 + int(job or 0)), **environ}
    port = _number(usual, "MASTER_PORT", "srun", least=1, most=65535)
    return asked._replace(rank=rank, address=usual["MASTER_ADDR"], port=port, launcher="srun")


def _group_by_hand(asked: Group, environ: Mapping[str, str], started: Mark | None) -> Group:
    """Return the group of a command that the user started on each of several nodes."""
    needed = ("NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
    missing = [name for name in needed if not environ.get(name)]
    if missing:
        raise UserError(
            f"training.nodes is {asked.nodes}, which needs {listed(missing, last='and')}: start the command on every "
            "node with torchrun or srun, or set NODE_RANK, from 0, and MASTER_ADDR and MASTER_PORT, the same on each."
        )
    node = _number(environ, "NODE_RANK", "training.nodes", most=asked.nodes - 1)
    port = _number(environ, "MASTER_PORT", "training.nodes", least=1, most=65535)
    rank = node * asked.per_node if started is None else started.rank
    return asked._replace(rank=rank, address=environ["MASTER_ADDR"], port=port)


def _number(environ: Mapping[str, str], name: str, owner: str, *, least: int = 0, most: int = 1_000_000) -> int:
    text = environ.get(name, "")
    if not re.fullmatch(r"\s*\d{1,7}\s*", text, flags=re.ASCII) or not least <= int(text) <= most:
        raise UserError(
            f"the environment variable {name} is {brief(text)}: {owner} needs a whole number from {least} to {most}."
        )
    return int(text)
