from __future__ import annotations

import io
import tarfile
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pinoise.errors import UserError
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set
from pinoise.paper.catalogue.texts import parse_stories

STORY = """<REUTERS TOPICS="{mark}" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="{old}" NEWID="{new}">
<DATE>26-FEB-1987 15:01:01.79</DATE>
<TOPICS>{topics}</TOPICS>
<PLACES><D>usa</D></PLACES>
<PEOPLE></PEOPLE>
<ORGS></ORGS>
<EXCHANGES></EXCHANGES>
<COMPANIES></COMPANIES>
<UNKNOWN>\x20
&#5;&#5;&#5;C T
&#22;&#22;&#1;f0704&#31;reute
u f BC-UNKNOWNWORD   02-26 0105</UNKNOWN>
<TEXT>&#2;
<TITLE>{title}</TITLE>
<DATELINE>    DATELINEWORD, Feb 26 - </DATELINE><BODY>{body}
 Reuter
&#3;</BODY></TEXT>
</REUTERS>
"""


def story(number: int, topics: tuple[str, ...], title: str, body: str) -> str:
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    mark = "YES" if topics else "NO"
    return STORY.format(mark=mark, old=number + 5543, new=number, topics=listed, title=title, body=body)


def stories() -> list[str]:
    """Two kept topics, one too rare, stories without a topic, and a topic that is only ever second."""
    made = []
    for index in range(20):
        made.append(story(3 * index + 1, (), "NO TOPIC", "nothing"))
        made.append(story(3 * index + 2, ("grain", "wheat"), "HARVEST &lt;HRV>", f"maize bushel number{index}"))
        if index % 2:
            made.append(story(3 * index + 3, ("earn",), "PROFIT", "dividend caf\xe9 shareholder"))
    made.append(story(90, ("tin",), "METAL", "tin smelter"))
    return made


def tar_of(texts: list[str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        files = {"README.txt": b"read me", "lewis.dtd": b"dtd"}
        for number in reversed(range(2)):  # the order in the archive does not matter
            half = texts[number * len(texts) // 2 : (number + 1) * len(texts) // 2]
            head = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
            files[f"reut2-{number:03}.sgm"] = (head + "".join(half)).encode("latin-1")
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return content.getvalue()


@pytest.fixture(params=["reuters21578.tar.gz", "reuters+21578+text+categorization+collection.zip"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as outer:
            outer.writestr("README.txt", "read me")
            outer.writestr("reuters21578.tar.gz", tar_of(stories()))
    else:
        path.write_bytes(tar_of(stories()))
    return path


def test_the_first_topic_is_the_class_and_rare_topics_are_left_out(archive: Path) -> None:
    data = read_set(replace(entry("reuters21578"), classes=2, shape=(10,)), [archive])
    assert data.class_names == ("grain", "earn")  # by first appearance
    assert data.test is not None
    assert data.train.y is not None
    assert data.test.y is not None
    assert Counter(data.train.y.tolist()) == {0: 16, 1: 8}
    assert Counter(data.test.y.tolist()) == {0: 4, 1: 2}


def test_features_are_sparse_tfidf_of_title_and_body_fitted_on_the_training_part(archive: Path) -> None:
    data = read_set(replace(entry("reuters21578"), classes=2, shape=(9,)), [archive])
    assert data.feature_names is not None
    assert data.test is not None
    words = set(data.feature_names)
    assert {"harvest", "hrv", "maize", "bushel", "profit", "dividend", "café", "shareholder"} <= words
    assert not words & {"unknownword", "datelineword", "wheat", "topic", "smelter"}
    x = data.train.x
    assert isinstance(x, sp.csr_array)
    assert isinstance(data.test.x, sp.csr_array)
    assert x.dtype == np.float32
    np.testing.assert_allclose(np.sqrt((x.toarray() ** 2).sum(axis=1)), 1, rtol=1e-5)
    # "reuter" is in all 24 training stories and "maize" in 16: idf is ln((1 + n) / (1 + df)) + 1.
    row = x.toarray()[np.flatnonzero(np.asarray(data.train.y) == 0)[0]]
    ratio = row[data.feature_names.index("maize")] / row[data.feature_names.index("reuter")]
    assert ratio == pytest.approx(np.log(25 / 17) + 1, rel=1e-5)


def test_text_that_was_never_marked_up_is_read_whole() -> None:
    text = '<REUTERS NEWID="1"><TOPICS><D>acq</D></TOPICS><TEXT TYPE="UNPROC">&#2;\nRAW &amp; BARE\n</TEXT></REUTERS>'
    ((topic, content),) = parse_stories(text)
    assert topic == "acq"
    assert content.split() == ["RAW", "&", "BARE"]


def test_an_archive_without_stories_or_with_too_few_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "reuters21578.tar.gz"
    path.write_bytes(tar_of(stories()[:6]))
    with pytest.raises(UserError, match=r"reuters21578.tar.gz is damaged, cut off"):
        read_set(entry("reuters21578"), [path])
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("README.txt", "read me")
    with pytest.raises(UserError, match=r"empty.zip holds none of the files reut2-000.sgm"):
        read_set(entry("reuters21578"), [empty])
