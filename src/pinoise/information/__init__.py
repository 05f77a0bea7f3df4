"""What noise tells about the task, and what training tells about itself. Accuracy belongs to ``evaluation``."""

from pinoise.information.equations import (
    Estimate,
    InformationEstimate,
    average,
    conditional_entropy,
    estimate_mutual_information,
    gaussian_entropy,
    measure_information,
    mutual_information,
    plug_in_information,
)
from pinoise.information.health import (
    EmbeddingMetrics,
    HealthFlag,
    NoiseMetrics,
    check_health,
    measure_embedding,
    measure_noise,
)
