"""What settings mean for images where they are silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pinoise import PiNDA
from pinoise.data.layout import are_images
from pinoise.errors import UserError
from pinoise.estimator.parameters import settings_from
from pinoise.experiments.plans import plan
from pinoise.experiments.recipes import RECIPES
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import load
from pinoise.training.config import Settings, complete, follow, follow_kind, parse_settings

PHOTOS = np.zeros((4, 16, 12, 3), np.uint8)
DEFAULT = {
    "encoder": "resnet18",
    "views.augmentations": ("simclr", "identity"),
    "noise.neighbours": 0,
    "views.pairing": "compose",
    "noise.covariance": "differences",
    "noise.amplitude": 0.5,
}


def told(**values: Any) -> dict[str, Any]:
    """Return what follows for photographs from these settings."""
    return dict(follow(parse_settings(values), PHOTOS).changes)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (PHOTOS, True),
        (PHOTOS.astype(np.float64), True),
        (PHOTOS.transpose(0, 3, 1, 2), True),
        (np.zeros((2, 16, 16, 4)), True),
        (np.zeros((2, 28, 28), np.uint8), True),
        (np.zeros((2, 28, 28)), False),  # may be a window of a recording
        (np.zeros((2, 128, 6)), False),
        (np.zeros((2, 16, 16, 12)), False),
        (-np.ones((2, 16, 16, 3)), False),
        (np.zeros((2, 4, 4, 3), np.uint8), False),
        (np.zeros((2, 64), np.uint8), False),
    ],
)
def test_images_are_told_by_shape_type_and_sign(x: np.ndarray, expected: bool) -> None:
    assert are_images(x) == expected
    assert (follow(Settings(), x).settings.encoder.name == "resnet18") == expected


def test_silence_on_images_means_a_resnet_augmentations_and_weak_noise_on_top_of_them() -> None:
    assert told() == DEFAULT
    followed = follow(Settings(), PHOTOS)
    (note,) = followed.notes
    assert all(f"{path}=" in note for path in DEFAULT)
    assert "--encoder mlp" in note


def test_silence_on_vectors_means_what_it_did() -> None:
    followed = follow(Settings(), np.zeros((4, 7)))
    assert (followed.changes, followed.notes) == ({}, ())
    assert followed.settings == complete(parse_settings({"encoder": "mlp"}))
    assert "taken as vectors" in follow(Settings(), np.zeros((4, 128, 6))).notes[0]


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({"encoder": "mlp"}, []),
        ({"noise": {"neighbours": 10}}, ["encoder", "views.augmentations"]),
        ({"views": {"augmentations": ["byol"]}}, [path for path in DEFAULT if path != "views.augmentations"]),
        ({"views": {"augmentations": []}}, ["encoder"]),
        ({"views": {"pairing": "noise-noise"}}, ["encoder"]),
        ({"views": {"pairing": "sampled"}}, ["encoder", "views.augmentations", "noise.neighbours"]),
        ({"views": {"noise": "none"}}, ["encoder", "views.augmentations"]),
        ({"objective": "paper"}, ["encoder", "views.augmentations"]),
        ({"noise": {"covariance": "diagonal"}}, ["encoder", "views.augmentations", "noise.neighbours"]),
        ({"noise": {"initial_scale": 0.25}}, [path for path in DEFAULT if path != "noise.amplitude"]),
        ({"encoder": {"width": 8}}, list(DEFAULT)),
        ({"encoder": "resnet50"}, [path for path in DEFAULT if path != "encoder"]),
    ],
)
def test_what_the_user_gave_stays(values: dict[str, Any], left: list[str]) -> None:
    assert list(told(**values)) == left


def test_nothing_follows_twice_and_nothing_from_the_file_of_a_run() -> None:
    settings = follow(Settings(), PHOTOS).settings
    assert follow(settings, PHOTOS).changes == {}
    assert follow(parse_settings(settings.model_dump(mode="json")), PHOTOS) == (settings, {}, ())


@pytest.mark.parametrize("method", [name for name in RECIPES if name != "aug-background"])
def test_nothing_follows_for_a_recipe_so_that_the_rows_of_a_table_are_what_they_say(method: str) -> None:
    encoder = {} if "dino" in method else {"encoder": "resnet18"}
    for planned in plan([method], [0], settings=encoder).values():
        assert follow_kind(planned, images=True) == (planned, {}, ())


def test_the_default_is_a_row_of_the_comparison() -> None:
    (planned,) = plan(["aug-differences"], [0], settings={"encoder": "resnet18"}).values()
    training = {"training": {"information_draws": 0}}
    assert planned == follow(parse_settings(training), PHOTOS).settings.model_copy(update={"data": planned.data})


def test_images_without_colours_are_cropped_alone() -> None:
    found = follow(Settings(), np.zeros((4, 16, 16, 4), np.uint8))
    assert found.changes["views.augmentations"] == ("crop", "identity")


def test_an_option_of_another_encoder_is_refused_once_the_samples_are_known() -> None:
    with pytest.raises(UserError, match=r"unknown setting 'encoder\.hidden'"):
        follow(parse_settings({"encoder": {"hidden": 8}}), PHOTOS)
    with pytest.raises(UserError, match=r"unknown setting 'encoder\.width'"):
        follow(parse_settings({"encoder": {"width": 8}}), np.zeros((4, 7)))


def test_the_estimator_has_the_same_defaults_as_the_command() -> None:
    estimator = settings_from(vars(PiNDA(image_shape=(16, 12, 3), epochs=7)), seed=0)
    command = follow(parse_settings({"training": {"epochs": 7}}), PHOTOS).settings
    assert estimator.model_dump() == command.model_dump()
    vectors = follow(parse_settings({"training": {"epochs": 7}}), np.zeros((4, 7))).settings
    assert settings_from(vars(PiNDA(epochs=7)), seed=0).model_dump() == vectors.model_dump()


def test_negative_pixels_are_not_recoloured(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    rng = np.random.default_rng(0)

    def stop(settings: Settings, *_: Any, **__: Any) -> None:
        seen.append(settings)
        raise UserError("seen")

    monkeypatch.setattr("pinoise.estimator.pinda.build_standardizer", stop)
    for x in (rng.normal(size=(8, 8, 8, 3)), rng.random((8, 8, 8, 3))):
        with pytest.raises(UserError, match="seen"):
            PiNDA(image_shape=(8, 8, 3)).fit(x)
    assert [settings.views.augmentations[0].name for settings in seen] == ["crop", "simclr"]


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize("name", ["fashion_mnist", "fsdd", "hapt_raw", "cifar10_sub12k"])
def test_the_catalogue_knows_which_sets_have_images(name: str) -> None:
    assert are_images(load(name, download=False).train.x) == entry(name).has_images
