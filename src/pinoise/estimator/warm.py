"""``warm_start``: what a fitted estimator keeps to go on from."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from pinoise.errors import UserError
from pinoise.training.checkpoint import Progress
from pinoise.training.run import Earlier


class Trained(NamedTuple):
    """The state that training ended in."""

    weights: dict[str, Tensor]  # of the whole model
    progress: Progress
    data: str  # the checksum of the samples
    seed: int
    trials: dict[str, float]  # of ``noise="auto"``, which is not tried again

    def goes_on(self, data: str) -> Earlier:
        """Return what training goes on from with samples of this checksum."""
        return Earlier(self.weights, self.progress, self.data == data)


def state_before(estimator: Any) -> Trained | None:
    """Return the state to go on from, or None if the estimator is to be fitted from the start."""
    if not estimator.warm_start or not hasattr(estimator, "embedding_"):
        return None
    state: Trained | None = estimator._trained
    if state is None:
        raise UserError(
            "warm_start goes on from the state of training, which neither PiNDA.save nor a pickle made with "
            "warm_start=False holds: fit with warm_start=False, or keep a pickle made with warm_start=True."
        )
    return state


def interruption(epochs: int) -> str:
    """Return what a user is told after an interrupt.

    >>> interruption(1)
    'fit was interrupted after 1 epoch: the model is used as it stands; warm_start=True goes on.'
    """
    done = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    return f"fit was interrupted after {done}: the model is used as it stands; warm_start=True goes on."
