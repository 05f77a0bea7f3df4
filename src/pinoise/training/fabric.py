"""Lightning Fabric for a group of processes, kept from reading variables of launchers that did not start this one.

Lightning takes a second to import, so only what begins to train imports this module.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pinoise.training.processes import Group
from pinoise.training.rendezvous import join, watch_over


@contextmanager
def hidden_variables(hides: Callable[[str], bool]) -> Iterator[None]:
    """Hide environment variables by their names inside the block.

    >>> with hidden_variables(lambda name: name == "PATH"):
    ...     "PATH" in os.environ
    False
    >>> "PATH" in os.environ
    True
    """
    found = {name: value for name, value in os.environ.items() if hides(name)}
    for name in found:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(found)


# Lightning turns these into a number when it is imported.
with hidden_variables(lambda name: name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")):
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy


def fabric_of(group: Group, *, accelerator: str, devices: list[int] | int, precision: Any, wait: int) -> Fabric:
    """Return the Fabric of a group.

    Args:
        group: the processes that train together.
        accelerator: the kind of device.
        devices: the device of this process by its number, or how many each node has.
        precision: of the training steps.
        wait: the seconds within which the processes meet.
    """
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # its import sets another level
    with hidden_variables(lambda name: name.startswith("LT_")):  # they would win over the settings
        return Fabric(
            accelerator=accelerator,
            strategy=Together(group, wait=wait) if group.size > 1 else "auto",
            devices=devices,
            num_nodes=group.nodes,
            precision=precision,
            plugins=[Cluster(group)],
        )


class Cluster(ClusterEnvironment):
    """A group as Fabric wants to know it. Fabric would take any scheduler's variables for a group."""

    def __init__(self, group: Group) -> None:
        self._group = group

    @property
    def creates_processes_externally(self) -> bool:
        """Whether Fabric should start no processes."""
        return True

    @property
    def main_address(self) -> str:
        """Where the processes meet."""
        return self._group.address

    @property
    def main_port(self) -> int:
        """The port where they meet."""
        return self._group.port

    @staticmethod
    def detect() -> bool:
        """Whether Fabric may choose it by itself."""
        return False

    def world_size(self) -> int:
        """Return the number of processes."""
        return self._group.size

    def set_world_size(self, size: int) -> None:
        """Do nothing: the size is known."""

    def global_rank(self) -> int:
        """Return the number of this process."""
        return self._group.rank

    def set_global_rank(self, rank: int) -> None:
        """Do nothing: the rank is known."""

    def local_rank(self) -> int:
        """Return the number of this process on its node."""
        return self._group.local_rank

    def node_rank(self) -> int:
        """Return the number of the node."""
        return self._group.node


class Together(DDPStrategy):
    """Data-parallel training whose processes meet within a stated time.

    ``find_unused_parameters`` keeps gradient buckets in one order, so a resumed run sums them in the same order.
    Buffers are not broadcast: ``average_statistics`` keeps them equal, and some hold thousands of rows.
    """

    def __init__(self, group: Group, *, wait: int) -> None:
        super().__init__(find_unused_parameters=True, broadcast_buffers=False)
        self._group, self._wait = group, wait

    def setup_environment(self) -> None:
        """Meet the other processes, then set up the device."""
        port: int | None = self._group.port
        if self._group.launcher != "torchrun":  # whose processes have met already
            port = join(self._group, wait=self._wait, device=self.root_device)
        super().setup_environment()
        if port is not None:
            watch_over(self._group, port=port)
