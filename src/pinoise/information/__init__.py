"""What noise tells about the task, and what training tells about itself. Accuracy belongs to ``evaluation``."""

from pinoise.information.equations import (
    conditional_entropy,
    gaussian_entropy,
    mutual_information,
    plug_in_information,
)
from pinoise.information.estimates import (
    Estimate,
    InformationEstimate,
    average,
    estimate_mutual_information,
    measure_information,
)
from pinoise.information.health import (
    EmbeddingMetrics,
    HealthFlag,
    NoiseMetrics,
    check_health,
    measure_embedding,
    measure_noise,
)
