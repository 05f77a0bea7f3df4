"""What the noise optimises: modules from per-sample losses and their noise to the scalar that is minimised.

An objective says in ``learns_noise`` whether ψ takes part. Losses themselves belong to ``methods``.
"""

from pinoise.noise.objectives.fixed import Fixed
from pinoise.noise.objectives.paper import Paper

Objective = Paper | Fixed
OBJECTIVES = ("paper", "fixed")

__all__ = ["OBJECTIVES", "Fixed", "Objective", "Paper"]
