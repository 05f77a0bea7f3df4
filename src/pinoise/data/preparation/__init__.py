"""How training data was read, remembered so that later data is read the same way: one contract, four kinds of data.

What is learned from raw tables and arrays belongs in ``pinoise.data.encoding``.
"""

from pinoise.data.preparation.contract import Preparation
from pinoise.data.preparation.kinds import preparation_from_json, prepare
