"""What training tells about itself: the size and health of the noise. Accuracy belongs to ``evaluation``."""

from pinoise.information.health import HealthFlag, NoiseSummary, check_noise, summarise_noise

__all__ = ["HealthFlag", "NoiseSummary", "check_noise", "summarise_noise"]
