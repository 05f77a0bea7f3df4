"""Lightning Fabric, kept from reading variables of launchers that did not start this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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


__all__ = ["ClusterEnvironment", "DDPStrategy", "Fabric", "hidden_variables"]

# Lightning turns these into a number when it is imported.
with hidden_variables(lambda name: name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK")):
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy
