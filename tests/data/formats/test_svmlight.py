from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from pinoise.data.formats import svmlight
from pinoise.data.formats.svmlight import read_svmlight
from pinoise.errors import UserError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.svm"
    path.write_text(text)
    return path


@pytest.mark.parametrize("zero_based", [True, False])
def test_a_matrix_with_queries_survives_in_either_numbering(tmp_path: Path, zero_based: bool) -> None:
    rng = np.random.default_rng(0)
    x = (rng.random((20, 8)) < 0.3) * rng.normal(size=(20, 8)).round(3)
    x[0, 0] = x[0, 7] = 1.0
    y = rng.integers(0, 3, size=20)
    queries = np.repeat([4, 9], 10)
    dump_svmlight_file(x, y, str(tmp_path / "a.svm"), zero_based=zero_based, query_id=queries)
    raw = read_svmlight(tmp_path / "a.svm")
    assert raw.first_index == (0 if zero_based else 1)
    assert sp.issparse(raw.train.x)
    np.testing.assert_allclose(raw.train.x.toarray(), x, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(raw.train.y), y)
    np.testing.assert_array_equal(np.asarray(raw.train.groups), queries)


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_compressed_files_are_read(tmp_path: Path, ending: str, compress: object) -> None:
    path = tmp_path / f"a.txt.{ending}"
    path.write_bytes(compress(b"1 1:2 # remark\n-1 2:0.5\n"))  # type: ignore[operator]
    raw = read_svmlight(path)
    np.testing.assert_array_equal(np.asarray(raw.train.x), [[2.0, 0.0], [0.0, 0.5]])
    assert raw.train.groups is None


def test_a_file_that_writes_half_of_its_cells_becomes_dense(tmp_path: Path) -> None:
    assert isinstance(read_svmlight(written(tmp_path, "1 1:0 2:3\n0 3:1 4:2\n")).train.x, np.ndarray)
    assert sp.issparse(read_svmlight(written(tmp_path, "1 1:0\n0 3:1 4:2\n")).train.x)


def test_a_later_file_keeps_the_numbering_and_width_of_the_first(tmp_path: Path) -> None:
    raw = read_svmlight(written(tmp_path, "1 1:5\n"), n_features=4, first_index=0)
    assert isinstance(raw.train.x, sp.csr_array)
    np.testing.assert_array_equal(raw.train.x.toarray(), [[0, 5, 0, 0]])
    with pytest.raises(UserError, match="data row 2 has feature 0: allowed are 1 to 4"):
        read_svmlight(written(tmp_path, "1 1:5\n0 0:1 2:3\n"), n_features=4, first_index=1)
    with pytest.raises(UserError, match="data row 2 has feature 5: allowed are 1 to 4"):
        read_svmlight(written(tmp_path, "1 1:5\n0 5:1\n"), n_features=4, first_index=1)
    with pytest.raises(UserError, match="data row 2 has feature 5: allowed are 1 to 4"):
        read_svmlight(written(tmp_path, "1 1:5\n0 5:1\n"), n_features=4)


@pytest.mark.parametrize(
    "line",
    [
        "1 -1:2",
        "1 3:2 1:1",
        "1 2:2 2:1",
        "a 1:2",
        "1,2 1:2",
        "1 1:x",
        "1 1",
        "1 1.5:2",
        "1 99999999999:1",
        "1 qid:x 1:1",
        "5.1,3.5,setosa",
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(UserError) as caught:
        read_svmlight(written(tmp_path, f"1 1:2\n# remark\n{line}\n1 1:2\n"))
    assert f"a.svm, line 3: '{line}' was found instead of 'label [qid:query] index:value " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_bad_last_line_is_named_whether_or_not_it_ends(tmp_path: Path, end: str) -> None:
    with pytest.raises(UserError, match=r"a\.svm, line 2: 'x' was found"):
        read_svmlight(written(tmp_path, f"1 1:2\nx{end}"))


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_file_that_does_not_fit_in_memory_says_how_to_convert_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(svmlight, "free_memory", lambda: 10_000)
    (tmp_path / "a.svm").write_bytes(compress(b"1 1:2\n" * 1000))
    with pytest.raises(UserError, match=r"a\.svm holds more than the 5000 bytes allowed: .*\.npy and Parquet"):
        read_svmlight(tmp_path / "a.svm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# only a remark\n", "holds no rows"),
        ("1\n0\n", "no feature in any row"),
        ("1 qid:1 1:1\n0 1:2\n", "on 1 of its 2 rows"),
    ],
)
def test_files_without_content_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_svmlight(written(tmp_path, text))


def test_a_cut_off_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:2\n" * 1000)[:-12])
    with pytest.raises(UserError, match=r"a\.svm\.gz is damaged, cut off"):
        read_svmlight(path)
