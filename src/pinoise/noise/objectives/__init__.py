"""What the noise optimises: modules that look at a batch and return the scalar that is minimised.

An objective says in ``learns_noise`` whether ψ takes part. Losses themselves belong to ``methods``.
"""

from pinoise.noise.objectives.adversarial import Adversarial
from pinoise.noise.objectives.base import Look, Objective, Outcome
from pinoise.noise.objectives.fixed import Fixed
from pinoise.noise.objectives.information import Information
from pinoise.noise.objectives.paper import Paper
from pinoise.noise.objectives.supported import Supported

__all__ = [
    "Adversarial",
    "Fixed",
    "Information",
    "Look",
    "Objective",
    "Outcome",
    "Paper",
    "Supported",
]
