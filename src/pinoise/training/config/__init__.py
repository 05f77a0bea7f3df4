"""The configuration of a run, read once into typed objects. Building from it does not belong here.

A part (encoder, method, objective, generator, view) is declared once: its signature defines its section.
"""

from pinoise.training.config.parse import (
    complete,
    distrusted,
    follow,
    follow_kind,
    merge,
    override,
    parse_assignment,
    parse_settings,
    read_settings,
    read_yaml,
)
from pinoise.training.config.section import Choice, dump_yaml, read_choice
from pinoise.training.config.settings import (
    DataSettings,
    HeadSettings,
    NoiseSettings,
    Settings,
    TrainingSettings,
    ViewSettings,
    embedding_of,
    encoder_of,
    image_part,
    looks_at_neighbours,
    noise_defaults,
    scaling_of,
    takes_images,
)
