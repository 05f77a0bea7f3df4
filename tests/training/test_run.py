"""What a run folder takes from its data before training, and keeps for when it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.data.rows import Rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.model import contrastive_model, load_run
from pinoise.paper.background import BackgroundNoise
from pinoise.training import run as run_module
from pinoise.training.build import seeded_model
from pinoise.training.callbacks import Interrupted, Quiet
from pinoise.training.config import Settings, complete, merge, parse_settings
from pinoise.training.folder import RUN_FORMAT, check_folder, create_folder, read_config
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import run_training

DIGITS: dict[str, Any] = {
    "data": {"source": "digits", "rows": 200},
    "encoder": {"hidden": 32, "out_features": 8},
    "head": {"hidden": 16, "out_features": 8},
    "noise": {"generator": {"hidden": 16}},
    "training": {"epochs": 2, "batch_size": 64, "device": "cpu", "information_draws": 0},
}
IMAGES, SIZE = 60, 8


def images_with_masks(folder: Path, *, labelled: bool, masks: int = IMAGES, **data: Any) -> Settings:
    """Write images and masks whose first pixels hold the number of the image, six bits of it in the mask."""
    x = np.random.default_rng(0).integers(0, 256, (IMAGES, SIZE, SIZE, 3), dtype=np.uint8)
    x[:, 0, 0, 0] = np.arange(IMAGES)
    np.savez(folder / "x.npz", **{"X": x, "y": np.arange(IMAGES) % 2} if labelled else {"X": x})
    background = np.zeros((masks, SIZE, SIZE), dtype=bool)
    background[:, 0, :6] = np.arange(masks)[:, None] >> np.arange(6) & 1
    np.save(folder / "masks.npy", background)
    views = {"augmentations": [{"name": "background", "masks": str(folder / "masks.npy")}]}
    source = {"source": str(folder / "x.npz"), **data}
    training = {"epochs": 1, "batch_size": 16, "device": "cpu", "information_draws": 0}
    values = {"data": source, "encoder": {"name": "resnet18", "width": 4}, "views": views, "training": training}
    return parse_settings(values)


@pytest.mark.parametrize(("labelled", "rows", "trained"), [(False, None, 60), (True, None, 48), (True, 20, 20)])
def test_a_mask_goes_with_its_image_however_many_were_held_out_or_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labelled: bool, rows: int | None, trained: int
) -> None:
    seen: list[tuple[ContrastiveModel, Standardizer, Rows]] = []

    def remember(settings: Settings, standardizer: Standardizer, rows: Rows, **options: Any) -> ContrastiveModel:
        model = seeded_model(settings, standardizer, rows, **options)
        seen.append((model, standardizer, rows))
        return model

    monkeypatch.setattr(run_module, "seeded_model", remember)
    run_training(tmp_path / "run", images_with_masks(tmp_path, labelled=labelled, rows=rows), reporter=Quiet())
    ((model, standardizer, samples),) = seen
    (view,) = model.pairing.augmentations
    assert isinstance(view, BackgroundNoise)
    of_masks = (view.masks[:, 0, :6].numpy() * 2 ** np.arange(6)).sum(axis=1)
    of_images = standardizer.undo(samples[torch.arange(trained)].double().numpy())[:, 0, 0, 0].round()
    assert len(set(of_masks.tolist())) == trained
    assert of_masks.tolist() == of_images.tolist()

    finished = load_run(tmp_path / "run")
    part = finished.own_data().train
    again = contrastive_model(finished, finished.rows(part.x, where="x.npz", origin=part.origin)).pairing.augmentations[
        0
    ]
    assert isinstance(again, BackgroundNoise)
    assert torch.equal(again.masks, view.masks)


def test_masks_for_the_rows_that_are_trained_on_alone_are_refused(tmp_path: Path) -> None:
    settings = images_with_masks(tmp_path, labelled=True, masks=48)
    with pytest.raises(UserError, match=r"masks\.npy: 48 masks for 60 images \(48 of them trained on\): give one"):
        run_training(tmp_path / "run", settings, reporter=Quiet())
    assert not (tmp_path / "run").exists()


def weights(run: Path) -> list[bytes]:
    names = ("encoder.safetensors", "noise.safetensors", "standardizer.safetensors")
    return [(run / name).read_bytes() for name in names]


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[Path, Settings, list[bytes]]:
    """A run that was stopped after its first step, its settings, and what it ends in when it is not."""
    settings = parse_settings(DIGITS)
    run_training(tmp_path / "whole", settings, reporter=Quiet())
    with pytest.raises(Interrupted):
        run_training(tmp_path / "run", settings, reporter=Quiet(), should_stop=lambda: True)
    return tmp_path / "run", settings, weights(tmp_path / "whole")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("harm", [Path.unlink, cut])
def test_a_standardiser_that_is_missing_or_damaged_is_learned_again(
    stopped: tuple[Path, Settings, list[bytes]], harm: Callable[[Path], None]
) -> None:
    run, settings, expected = stopped
    assert not (run / "encoder.safetensors").exists()
    harm(run / "standardizer.safetensors")
    run_training(run, settings, reporter=Quiet())
    assert weights(run) == expected


def test_data_that_changed_leaves_the_standardiser_as_it_was(tmp_path: Path) -> None:
    settings = parse_settings(merge(DIGITS, {"data": {"source": str(tmp_path / "x.npy")}}))
    x = np.random.default_rng(0).normal(size=(200, 5))
    np.save(tmp_path / "x.npy", x)
    run_training(tmp_path / "run", settings, reporter=Quiet())
    before = weights(tmp_path / "run")
    for changed in (2 * x, np.hstack([x, x])):
        np.save(tmp_path / "x.npy", changed)
        with pytest.raises(UserError, match="has changed since"):
            run_training(tmp_path / "run", settings, reporter=Quiet())
        assert weights(tmp_path / "run") == before


def test_a_folder_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("data: {source: digits}\nnoise: {hidden: 1024}\n")
    with pytest.raises(UserError, match=rf"another version .* of format 1; this version reads format {RUN_FORMAT}"):
        load_run(tmp_path)


def test_a_run_folder_states_its_format(tmp_path: Path) -> None:
    settings = parse_settings(DIGITS)
    create_folder(tmp_path / "run", settings)
    assert (tmp_path / "run" / "config.yaml").read_text().startswith(f"format: {RUN_FORMAT}\n")
    assert read_config(tmp_path / "run") == complete(settings)


def test_a_part_without_an_import_path_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    settings = parse_settings(merge(DIGITS, {"views": {"augmentations": [lambda x: 2 * x]}}))
    with pytest.raises(UserError, match=r"views\.augmentations\.0 is '<lambda>', which has no import path"):
        run_training(tmp_path / "run", settings, reporter=Quiet())
    assert not (tmp_path / "run").exists()


def test_a_file_of_the_name_of_a_record_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"mine": 1}')
    with pytest.raises(UserError, match="is not empty and not a run folder"):
        check_folder(tmp_path)
