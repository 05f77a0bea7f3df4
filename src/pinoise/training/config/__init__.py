"""The configuration of a run, read once into typed objects. Building from it does not belong here.

A part (encoder, method, objective, generator, view) is declared once: its signature defines its section.
"""

from pinoise.training.config.complete import IMAGE_ENCODER, VECTOR_ENCODER, complete, follow, follow_kind
from pinoise.training.config.parse import dump_yaml, merge, override, parse_assignment, read_settings, read_yaml
from pinoise.training.config.section import Choice, read_choice
from pinoise.training.config.settings import (
    DataSettings,
    HeadSettings,
    NoiseSettings,
    Settings,
    TrainingSettings,
    ViewSettings,
    image_part,
    parse_settings,
    takes_images,
)
