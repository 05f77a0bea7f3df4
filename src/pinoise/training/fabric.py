"""Lightning Fabric for a group of processes, kept from reading variables of launchers that did not start this one.

Lightning takes a second to import, so only what begins to train imports this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from pinoise.choices import StrategyName
from pinoise.modes import hidden_variables
from pinoise.training.processes import Group
from pinoise.training.rendezvous import join, watch_over

# Lightning turns these into a number when it is imported.
with hidden_variables({"RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK"}.__contains__):
    from lightning_fabric import Fabric as Fabric
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy
    from lightning_fabric.strategies.fsdp import FSDPStrategy


@dataclass
class Cluster(ClusterEnvironment):
    """A group as Fabric wants to know it. Fabric would take any scheduler's variables for a group."""

    _group: Group

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


class _Meeting:
    """A strategy whose processes meet within a stated time."""

    root_device: Any
    _group: Group
    _wait: int

    def setup_environment(self) -> None:
        """Meet the other processes, then set up the device."""
        port: int | None = self._group.port
        if not self._group.has_met:
            port = join(self._group, wait=self._wait, device=self.root_device)
        super().setup_environment()  # type: ignore[misc]
        if port is not None:
            watch_over(self._group, port=port)


class Together(_Meeting, DDPStrategy):
    """Data-parallel training: every process has all weights.

    ``find_unused_parameters`` keeps gradient buckets in one order, so a resumed run sums them in the same order.
    Buffers are not broadcast: ``average_statistics`` keeps them equal, and some hold thousands of rows.
    """

    def __init__(self, group: Group, *, wait: int) -> None:
        super().__init__(find_unused_parameters=True, broadcast_buffers=False)
        self._group, self._wait = group, wait


class Divided(_Meeting, FSDPStrategy):
    """Data-parallel training in which every process keeps a share of the weights, gradients and moments.

    Fabric itself has it for GPUs; torch also does it on CPUs, which is how it is tested.
    """

    def __init__(self, group: Group, *, wait: int) -> None:
        super().__init__()
        self._group, self._wait = group, wait

    def setup_module(self, module: nn.Module) -> nn.Module:
        """Divide the weights. Without a number for the device, torch would look for a GPU."""
        return FullyShardedDataParallel(
            module, device_id=self.root_device, mixed_precision=self.mixed_precision_config, use_orig_params=True
        )

    def save_checkpoint(
        self, path: Any, state: dict[str, Any], storage_options: Any = None, filter: Any = None
    ) -> None:
        """Write a checkpoint of whole tensors, as other strategies do."""
        torch.save(state, path)


STRATEGIES: dict[StrategyName, type[Together] | type[Divided]] = {"ddp": Together, "fsdp": Divided}
