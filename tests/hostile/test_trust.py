"""Files of others run nothing and write nowhere: an import path or a link in them needs the user's consent."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml
from tests.problems import contents

from pinoise import PiNDA, PiNDAClassifier, UserError, load_run
from pinoise.choices import ENCODER, GENERATOR, METHOD, NOISE_VIEW, OBJECTIVE, VIEW, Kind
from pinoise.training.config import Settings, override
from pinoise.training.config.section import Chosen

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # toys learn little

EVIL = """
from pathlib import Path

Path(__file__).with_name("marker").write_text("ran")

from pinoise.networks.mlp import MLPEncoder as f
"""

# As in the report of the fault: a file beside the configuration, by way of a namespace package. Then modules that are
# always there, and what only looks like a part of the package.
PATHS = ["runs.mine.evil:f", "evil:f", "evil:", "os:system", "builtins:eval", "pinoise.networks:MLPEncoder", "mlp:f"]

Command = Callable[..., Any]


def part_settings() -> dict[str, Kind]:
    """Every setting that holds a part, from the declaration of the configuration."""

    def found(section: Any, before: str = "") -> Iterator[tuple[str, Kind]]:
        for name, field in section.model_fields.items():
            marks = [*field.metadata, *(mark for inner in get_args(field.annotation) for mark in get_args(inner))]
            yield from ((before + name, mark.kind) for mark in marks if isinstance(mark, Chosen))
            if hasattr(field.annotation, "model_fields"):
                yield from found(field.annotation, f"{before}{name}.")

    return dict(found(Settings))


SETTINGS = part_settings()
LISTS = ("views.augmentations",)


def test_the_settings_that_hold_parts_are_known() -> None:
    kinds = {"encoder": ENCODER, "method": METHOD, "objective": OBJECTIVE}
    kinds |= {"noise.generator": GENERATOR, "views.noise": NOISE_VIEW, "views.augmentations": VIEW}
    assert kinds == SETTINGS
    assert {path.partition(".augmentations.")[0] for path in Settings().parts} <= SETTINGS.keys()


@pytest.fixture
def trap(_made: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A finished run in ``runs/mine``, with a module of a hostile hand beside everything."""
    shutil.copytree(_made / "r", "runs/mine")  # on the data that its checkpoints name
    for place in (here, here / "runs" / "mine"):
        (place / "evil.py").write_text(EVIL)
    monkeypatch.setattr(sys, "path", [*sys.path, str(here)])  # so that only the refusal keeps it from running
    yield here
    for name in [name for name in sys.modules if name.split(".")[0] in ("evil", "runs")]:
        del sys.modules[name]


def markers(folder: Path) -> list[Path]:
    return [*folder.rglob("marker"), *(Path(name) for name in sys.modules if "evil" in name)]


def put(setting: str, value: object, *, config: Path = Path("runs/mine/config.yaml")) -> None:
    """Write a value into a configuration."""
    values = override(yaml.safe_load(config.read_text()), [(setting, value)])
    config.write_text(yaml.safe_dump(values))


VERBS: dict[str, list[str]] = {
    "embed": ["embed", "runs/mine", "--data", "d.csv", "--out", "z.npy"],
    "predict": ["predict", "runs/mine", "--data", "d.csv", "--out", "z.csv"],
    "evaluate": ["evaluate", "runs/mine"],
    "report": ["report", "runs/mine"],
    "resume": ["train", "--resume", "runs/mine", "--epochs", "2"],
    "config": ["train", "--config", "runs/mine/config.yaml", "--out", "again"],
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_verb_follows_an_import_path_of_a_run_folder_or_a_configuration(
    pinoise: Command, trap: Path, setting: str
) -> None:
    sound = Path("runs/mine/config.yaml").read_text()
    for number, path in enumerate(PATHS):
        value = (path, {"name": path}, {"name": path, "hidden": 8})[number % 3]
        Path("runs/mine/config.yaml").write_text(sound)
        put(setting, [value] if setting in LISTS else value)
        before = contents(trap)
        for arguments in VERBS.values():
            sentence = pinoise(*arguments).sentence
            assert sentence.startswith(f"runs/mine/config.yaml names {setting}"), sentence
            assert f" {path!r}, which runs code: if you trust the file, pass --trust" in sentence
        for load in (load_run, PiNDA.load, PiNDAClassifier.load):
            with pytest.raises(UserError, match=r"config\.yaml names .* runs code"):
                load("runs/mine")
        assert contents(trap) == before
        assert markers(trap) == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_follows_an_import_path_of_a_trusted_file(pinoise: Command, trap: Path, verb: str) -> None:
    put("encoder", {"name": "runs.mine.evil:f", "hidden": 8, "out_features": 4})
    if verb == "resume":  # a run that began with this encoder
        shutil.rmtree("runs/mine/checkpoints")
        Path("runs/mine/data.json").unlink()
    trusted = pinoise(*VERBS[verb], "--trust")
    assert trusted.code == 0, trusted.err
    assert Path("runs/mine/marker").exists()


def test_a_process_in_the_folder_above_runs_nothing_until_it_is_told_to_trust(
    pinoise_process: Command, trap: Path
) -> None:
    put("encoder", {"name": "runs.mine.evil:f", "hidden": 8, "out_features": 4})
    assert "names encoder 'runs.mine.evil:f'" in pinoise_process(*VERBS["embed"]).sentence
    assert markers(trap) == []
    trusted = pinoise_process(*VERBS["embed"], "--trust")
    assert trusted.code == 0, trusted.err
    assert markers(trap) == [trap / "runs" / "mine" / "marker"]


def test_two_processes_are_told_to_trust_by_one_flag(pinoise_process: Command, trap: Path) -> None:
    put("encoder", {"name": "evil:f", "hidden": 8, "out_features": 4})
    put("training", {"epochs": 1, "device": "cpu", "devices": 2})
    trusted = pinoise_process(*VERBS["config"], "--trust")
    assert trusted.code == 0, trusted.err
    assert "next: pinoise evaluate again --trust" in trusted.out


def test_what_is_typed_is_consent_and_what_stands_beside_it_is_not(pinoise: Command, trap: Path) -> None:
    put("encoder", {"name": "evil:f", "hidden": 8})
    put("method", "evil:g")
    assert "names method 'evil:g'" in pinoise(*VERBS["config"], "--encoder", "evil:f").sentence
    put("method", "simclr")
    assert "names encoder 'evil:f'" in pinoise(*VERBS["config"], "--set", "encoder.hidden=4").sentence
    replaced = pinoise("train", "--config", "runs/mine/config.yaml", "--out", "one", "--encoder", "mlp")
    assert replaced.code == 0, replaced.err
    typed = pinoise("train", "--config", "runs/mine/config.yaml", "--out", "two", "--encoder", "evil:f")
    assert typed.code == 0, typed.err
    assert Path("marker").exists()


def test_full_paths_of_parts_of_the_package_need_no_trust(pinoise: Command, trap: Path) -> None:
    for setting, kind in SETTINGS.items():
        for path in filter(None, kind.names.values()):
            settings = {setting: [path] if setting in LISTS else path}
            Path("full.yaml").write_text(yaml.safe_dump(override({}, settings.items())))
            refused = pinoise("train", "--config", "full.yaml", "--out", "d.csv")
            assert "trust" not in refused.sentence  # it is read as far as the next mistake
    put("encoder", {"name": ENCODER.names["mlp"], "hidden": 8, "out_features": 4})
    assert pinoise(*VERBS["embed"]).code == 0
    from pinoise.methods import SimCLR

    PiNDA(4, hidden=8, epochs=1, method=SimCLR).fit(np.load("d.npy")).save("own")
    assert PiNDA.load("own").method["name"] == METHOD.names["simclr"]


def test_resuming_does_not_write_through_links(pinoise: Command, trap: Path) -> None:
    outside = trap.parent / "outside"
    outside.mkdir()
    precious = outside / "precious"
    precious.write_text("mine")
    run = Path("runs/mine")
    for name in ("metrics.csv", "evaluation.json", "report.html", "checkpoints/partial.ckpt"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(precious)
    for verb in ("evaluate", "report", "resume"):
        done = pinoise(*VERBS[verb])
        assert done.code == 0, done.err
    assert precious.read_text() == "mine"
    for name in ("run.lock", "config.yaml.lock", ".config.yaml.partial"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(precious)
        pinoise("train", "--resume", "runs/mine", "--epochs", "3")  # it may be refused
        (run / name).unlink(missing_ok=True)
    assert precious.read_text() == "mine"
    for folder in ("checkpoints", "tensorboard"):
        moved = shutil.move(run / folder, outside / folder)
        (run / folder).symlink_to(moved)
        listed = sorted(outside.rglob("*"))
        refused = pinoise("train", "--resume", "runs/mine", "--epochs", "3").sentence
        assert refused.startswith(f"runs/mine/{folder} is a link to {moved}, where resuming the run would write")
        assert sorted(outside.rglob("*")) == listed
        (run / folder).unlink()
        shutil.move(moved, run / folder)


def test_the_current_folder_is_searched_only_for_parts_of_a_users_own(
    pinoise: Command, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries try to import modules that may be absent, and must not find them in a folder of somebody else."""
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(trap))])
    assert pinoise(*VERBS["embed"]).code == 0
    assert not {"", ".", str(trap)} & set(sys.path)
    assert (
        "No module named 'nowhere'"
        in pinoise("train", "--data", "digits", "--out", "a", "--encoder", "nowhere:f").sentence
    )
