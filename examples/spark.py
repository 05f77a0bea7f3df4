"""Embed a Spark table of any size with the exported model: the workers need onnxruntime, and neither torch nor pinoise.

pip install 'pinoise[export]' pyspark; Spark needs Java 17.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from sklearn.datasets import load_wine

from pinoise import PiNDA

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
frame = load_wine(as_frame=True).data
model = PiNDA(n_components=8, batch_size=64, random_state=0).fit(frame)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "wine.onnx")
    model.to_onnx(file)
    onnx = file.read_bytes()
features, columns = list(frame.columns), list(model.get_feature_names_out())


def embed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Embed the batches of a partition, one at a time; the model is loaded once."""
    import onnxruntime

    session = onnxruntime.InferenceSession(onnx)
    for batch in batches:
        x = np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in features], axis=1)
        (z,) = session.run(["embedding"], {"x": x.astype(np.float64)})
        yield pa.RecordBatch.from_arrays([batch.column("id"), *map(pa.array, z.T)], names=["id", *columns])


spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
table = spark.createDataFrame(frame.assign(id=range(len(frame)))).repartition(4)  # in earnest: spark.read.parquet(...)
schema = "id long, " + ", ".join(f"`{name}` float" for name in columns)
found = table.mapInArrow(embed, schema).toPandas().sort_values("id")  # in earnest: .write.parquet(...)
difference = np.abs(found[columns].to_numpy() - model.transform(frame)).max()
print(f"{len(found)} rows in 4 partitions, {len(columns)} columns, each id once: {found['id'].is_unique}")
print(f"as pinoise embeds them: {difference < 1e-4}")
spark.stop()
