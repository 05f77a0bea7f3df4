"""What noise tells about the task, and what training tells about itself. Accuracy belongs to ``evaluation``."""

from pinoise.information.entropy import conditional_entropy, gaussian_entropy, marginal_entropy
from pinoise.information.health import (
    FLAGS,
    EmbeddingMetrics,
    HealthFlag,
    NoiseMetrics,
    check_health,
    measure_embedding,
    measure_noise,
)
from pinoise.information.mutual_information import (
    Estimate,
    Information,
    average,
    estimate_mutual_information,
    measure_information,
    mutual_information,
    plug_in_information,
)

__all__ = [
    "FLAGS",
    "EmbeddingMetrics",
    "Estimate",
    "HealthFlag",
    "Information",
    "NoiseMetrics",
    "average",
    "check_health",
    "conditional_entropy",
    "estimate_mutual_information",
    "gaussian_entropy",
    "marginal_entropy",
    "measure_embedding",
    "measure_information",
    "measure_noise",
    "mutual_information",
    "plug_in_information",
]
