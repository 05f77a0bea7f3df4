"""What a finished run looks like: pictures of its noise, charts, and a page that holds them all.

Functions of arrays draw; ``collect`` and ``write_report`` read run folders. Nothing here trains or scores.
"""

from pinoise.report.charts import Ranking, rank_features, to_png
from pinoise.report.collect import NoisySamples, collect
from pinoise.report.pictures import MapRow, compare_grid, noise_grid
from pinoise.report.write import Report, write_report
