"""How a source becomes features and class numbers: learned from the training data, stored, and applied to later data.

Reading bytes belongs in ``pinoise.data.formats``; standardisation in ``pinoise.data.standardizer``.
"""

from pinoise.data.preparation.arrays import ArrayPreparation, learn_arrays
from pinoise.data.preparation.images import ImagePreparation, learn_images
from pinoise.data.preparation.kinds import Preparation, preparation_from_json
from pinoise.data.preparation.learning import learn_table
from pinoise.data.preparation.tables import MissingPolicy, TablePreparation

__all__ = [
    "ArrayPreparation",
    "ImagePreparation",
    "MissingPolicy",
    "Preparation",
    "TablePreparation",
    "learn_arrays",
    "learn_images",
    "learn_table",
    "preparation_from_json",
]
