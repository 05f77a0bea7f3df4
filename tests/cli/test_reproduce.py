"""``pinoise reproduce`` from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinoise.paper.reproduce.paper import item_names

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data set but those that come with scikit-learn, whatever this machine has."""
    (folder / "data").mkdir()
    monkeypatch.setenv("PINOISE_DATA", str(folder / "data"))


def test_the_list_names_every_item_with_its_data_and_time(pinoise: Command) -> None:
    found = json.loads(pinoise("reproduce", "--list", "--json").out)
    assert [one["item"] for one in found] == list(item_names())
    t2 = found[1]
    assert t2["scale"] == "small"
    assert t2["label"] == "table_non_vision"
    assert t2["data"]["HAR"] == "absent"
    assert all(one["time"] for one in found)
    text = pinoise("reproduce", "--list", "--scale", "smoke").out
    assert all(re.search(rf"^{name} ", text, flags=re.MULTILINE) for name in item_names())
    assert "absent CIFAR-10" in text


def test_the_list_tells_stand_ins(pinoise: Command, real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOISE_DATA", str(real_data))
    (found,) = json.loads(pinoise("reproduce", "T4", "--list", "--json").out)
    assert found["data"] == {"Fashion-MNIST": "present", "STL-10": "stand-in stl10_sample"}


def test_a_table_is_printed_with_the_papers_numbers(pinoise: Command) -> None:
    result = pinoise("reproduce", "T1", "--scale", "smoke")
    assert result.code == 0
    assert re.search(r"Epsilon +500,299 +500,000 +-299 ", result.out)
    assert "8 of 10 sets have the paper's number of rows" in result.out


def test_several_items_go_to_one_page_and_one_folder(pinoise: Command) -> None:
    result = pinoise(
        *("reproduce", "T1", "T10", "--scale", "smoke", "--json", "--html", "new/page.html", "--out", "results")
    )
    found = json.loads(result.out)["items"]
    assert [one["item"] for one in found] == ["T1", "T10"]
    assert all(one["verdict"] and one["environment"]["date"] for one in found)
    page = Path("new/page.html").read_text(encoding="utf-8")
    assert all(one["verdict"].replace("'", "&#39;") in page for one in found)
    stored = json.loads(Path("results/T10.json").read_text(encoding="utf-8"))
    assert stored["rows"] == found[1]["rows"]
    sentence = pinoise("reproduce", "T1", "--html", "new/page.html").sentence
    assert "page.html" in sentence
    assert "--force" in sentence
    assert pinoise("reproduce", "T1", "--html", "new/page.html", "--force").code == 0
    Path("results/F1-1.png").write_text("mine")
    assert "F1-1.png already exists" in pinoise("reproduce", "F1", "--out", "results").sentence


def test_a_stopped_reproduction_writes_nothing_so_that_the_same_command_goes_on(
    pinoise: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("reproduce", "T10", "--scale", "smoke", "--html", "page.html", "--out", "results", "--cache", "cache")

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pinoise.paper.reproduce.run.cost_lines", stop)
        stopped = pinoise(*arguments)
    assert stopped.code == 130
    assert "no file is written, and the same command goes on from here" in stopped.err
    assert not Path("page.html").exists()
    assert pinoise(*arguments).code == 0
    assert Path("page.html").exists()
    assert Path("results/T10.json").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], r"name an item, such as T2"),
        (["t2"], r"unknown item 't2': did you mean 'T2'\?"),
        (["T2", "informtion"], r"did you mean 'information'\?"),
        (["T2", "--scale", "large"], r"unknown scale 'large'"),
        (["T2", "--seeds", "0"], r"Invalid value for '--seeds': "),
        (["T7", "--sam", "gone.pth"], r"gone\.pth cannot be read: No such file"),
        (["T2", "--html", "gone/page.html", "--out", "data/file"], r"results cannot be written to data/file"),
        (["T3", "--scale", "smoke"], r"T3 needs CIFAR-10, of which neither the data nor a stand-in is here"),
    ],
)
def test_a_mistake_is_one_sentence(pinoise: Command, arguments: list[str], sentence: str) -> None:
    Path("data/file").write_text("")
    assert re.search(sentence, pinoise("reproduce", *arguments).sentence)
