from __future__ import annotations

import io

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from pinoise.data.publishers.svmlight import read_dense
from pinoise.errors import UserError


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
def test_every_block_size_gives_the_table_that_was_written(block: int) -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, 7)) < 0.5, rng.normal(size=(40, 7)), 0.0)
    y = rng.integers(0, 5, 40)
    qid = np.repeat(np.arange(8), 5) * 100
    file = io.BytesIO()
    dump_svmlight_file(x, y, file, zero_based=False, query_id=qid)
    file.seek(0)
    found = read_dense(file, label="toy", features=7, queries=True, block=block)
    np.testing.assert_allclose(found[0], x, rtol=1e-6)
    assert found[0].dtype == np.float32
    np.testing.assert_array_equal(found[1], y)
    np.testing.assert_array_equal(found[2], qid)


@pytest.mark.parametrize("block", [1, 1 << 20])
@pytest.mark.parametrize("bad", ["1 2:x", "1 0:1", "1 9:1", "one 1:1", "1 1:1 nonsense"])
def test_a_bad_line_is_named_by_its_number(bad: str, block: int) -> None:
    lines = ["1 1:2"] * 10
    lines[6] = bad
    file = io.BytesIO("\n".join(lines).encode())
    with pytest.raises(UserError, match=r"toy.txt, line 7: this is not a row of svmlight text"):
        read_dense(file, label="toy.txt", features=3, block=block)


def test_rows_without_a_query_are_refused_where_queries_are_needed() -> None:
    with pytest.raises(UserError, match="every row needs a query"):
        read_dense(io.BytesIO(b"1 1:2\n"), label="toy", features=3, queries=True)


def test_fractional_labels_and_empty_files_are_refused() -> None:
    with pytest.raises(UserError, match=r"toy, row 2: the label 0.5 is not a whole number"):
        read_dense(io.BytesIO(b"1 1:2\n0.5 1:2\n"), label="toy", features=3)
    with pytest.raises(UserError, match="toy holds no rows"):
        read_dense(io.BytesIO(b"# only a remark\n"), label="toy", features=3)
    with pytest.raises(UserError, match="toy holds no rows"):
        read_dense(io.BytesIO(b""), label="toy", features=3)
