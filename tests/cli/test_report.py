"""``pinoise report`` from the command line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Command = Callable[..., Any]


def test_report_prints_where_everything_is(pinoise: Command, digits_run: Path) -> None:
    result = pinoise("report", digits_run)
    assert result.code == 0
    assert result.out.splitlines() == [str(digits_run / "report.html")]
    assert (digits_run / "report.html").stat().st_size > 1000


def test_report_shows_what_evaluate_found(pinoise: Command, digits_run: Path, tmp_path: Path) -> None:
    scores = json.loads(pinoise("evaluate", digits_run, "--json").out)["scores"]
    told = json.loads(pinoise("report", digits_run, "--out", tmp_path / "made" / "here", "--json").out)
    assert told.keys() == {"report", "pictures", "flags"}
    assert told["report"] == str(tmp_path / "made" / "here" / "report.html")
    assert told["pictures"] == {}
    assert not (digits_run / "report.html").exists()
    page = Path(told["report"]).read_text(encoding="utf-8")
    for embedding in ("raw", "untrained", "learned"):
        cells = [f"{100 * scores[embedding][key]:.1f}" for key in ("knn", "sr", "lr", "few")]
        assert f'<th scope="row">{embedding}</th><td>{"</td><td>".join(cells)} ± ' in page


def test_report_compares_runs_of_the_same_name(pinoise: Command, digits_run: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(digits_run, tmp_path / "elsewhere" / digits_run.name)
    assert pinoise("report", digits_run, twin).code == 0
    assert f"elsewhere/{digits_run.name}" in (digits_run / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("measured", [False, True])
def test_every_run_of_a_report_is_evaluated(
    pinoise: Command, people: Path, folder: Path, tiny: list[str], measured: bool
) -> None:
    label = "income" if measured else "group"
    for name in ("one", "two"):
        seed = ["--seed", len(name) + ord(name[0])]
        assert pinoise("train", "--data", people, "--label", label, "--out", name, *tiny, *seed).code == 0
    result = pinoise("report", "one", "two")
    for name in ("one", "two"):
        assert f"{name}: this state of the run has not been evaluated, so it is now" in result.err
    page = Path("one/report.html").read_text(encoding="utf-8")
    table = page[page.index("of the embeddings, in percent") - 20 :]
    lines = re.findall(r"<tr>\s*(.*?)\s*</tr>", table[: table.index("</table>")], re.DOTALL)
    cells = {found[0]: found[1:] for line in lines if (found := re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line))}
    for name in ("one", "two"):
        scores = json.loads(Path(name, "evaluation.json").read_text())["scores"]
        assert cells[name][3] == f"{100 * scores['learned']['knn']:.1f}".replace("-", "−")
        assert cells["raw features"][3] == f"{100 * scores['raw']['knn']:.1f}".replace("-", "−")


def test_report_of_pictures(pinoise: Command, folder: Path, tiny: list[str]) -> None:
    np.savez("x.npz", X=np.random.default_rng(0).integers(0, 256, (30, 6, 5), dtype=np.uint8), y=np.arange(30) % 2)
    assert pinoise("train", "--data", "x.npz", "--out", "run", *tiny).code == 0
    told = json.loads(pinoise("report", "run", "--samples", 3, "--seed", 5, "--json").out)
    assert told["pictures"] == {name: f"run/{name}.png" for name in ("noise",)}
    assert "3 test samples in columns" in Path("run/report.html").read_text(encoding="utf-8")
    assert "at most 32 pictures" in pinoise("report", "run", "--samples", 40).sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], r"Missing argument 'DIR'"),
        (["gone"], r"gone is not a folder: give the folder of a run\."),
        (["."], r"\. is not a run folder: it has no config\.yaml\."),
        (["digits_run", "--samples", "0"], r"Invalid value for '--samples': "),
        (["digits_run", "--seed", "-1"], r"Invalid value for '--seed': "),
        (["digits_run", "--out", "file"], r"a report cannot be written to file: file is a file"),
        (["digits_run", "gone"], r"gone is not a folder"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    pinoise: Command, folder: Path, digits_run: Path, arguments: list[str], sentence: str
) -> None:
    (folder / "file").write_text("")
    assert re.search(sentence, pinoise("report", *arguments).sentence)
    assert not list(folder.rglob("report.html"))


def test_runs_on_different_data_are_one_sentence(
    pinoise: Command, folder: Path, digits_run: Path, tiny: list[str]
) -> None:
    assert pinoise("train", "--data", "wine", "--batch-size", "64", "--out", "wine", *tiny).code == 0
    sentence = pinoise("report", digits_run, "wine").sentence
    assert re.search(r"trained on 200 rows of 64 from digits and wine on \d+ rows of 13 from wine: only runs", sentence)
