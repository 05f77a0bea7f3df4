"""Samples with their noise, in the units and the layout of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pinoise.errors import UserError
from pinoise.model import Model
from pinoise.report import collect

Train = Any


def test_vectors_are_in_the_units_of_the_file(table_run: Model) -> None:
    data = table_run.own_data()
    assert data.test is not None
    assert table_run.noise is not None
    found = collect(table_run)
    trained_on = np.asarray(data.train.x)
    mean, deviation = trained_on.mean(axis=0), trained_on.std(axis=0)
    x = torch.from_numpy((data.test.x - mean) / deviation).float()
    with torch.no_grad():
        sigma = table_run.noise.relative_scale(x).numpy()
    assert found.part == "test"
    assert not found.are_pictures
    np.testing.assert_array_equal(found.originals, data.test.x)  # all there are, as they are fewer than asked for
    np.testing.assert_allclose(found.relative_sigma, sigma, rtol=1e-4)
    np.testing.assert_allclose(found.sigma, sigma * deviation, rtol=1e-4)
    np.testing.assert_array_equal(found.noisy, found.originals + found.epsilon)
    assert found.feature_names == ("age", "<b>cost</b> in $", "a, b")
    assert found.labels is not None
    assert set(found.labels) == {"a", "b"}


def test_an_mlp_on_pictures_keeps_their_layout(colour_run: Model) -> None:
    data = colour_run.own_data()
    assert data.test is not None
    assert colour_run.noise is not None
    found = collect(colour_run, samples=3)
    n = len(data.test)
    np.testing.assert_array_equal(found.originals, np.asarray(data.test.x)[[0, n // 3, 2 * n // 3]])
    trained_on = np.asarray(data.train.x)
    deviation = trained_on.std(axis=0)  # of every pixel and channel
    x = torch.from_numpy((found.originals - trained_on.mean(axis=0)) / deviation).float()
    with torch.no_grad():
        np.testing.assert_allclose(found.sigma, colour_run.noise.scale(x).numpy() * deviation, rtol=1e-3)
        np.testing.assert_allclose(found.mu, colour_run.noise.mean(x).numpy() * deviation, rtol=1e-3, atol=1e-3)
    assert found.are_pictures
    assert found.learns_mean
    assert found.brightness == (0, 255)


def test_an_image_network_gives_pictures_back_with_channels_last(train: Train, files: Path) -> None:
    run = train(files / "colour.npz", encoder={"name": "resnet18", "width": 4}, objective="paper")
    data = run.own_data()
    found = collect(run, samples=4)
    assert found.sigma.shape == found.epsilon.shape == found.originals.shape == (4, 8, 6, 3)
    deviation = data.train.x.reshape(-1, 3).std(axis=0)  # of every channel
    x = (found.originals - data.train.x.reshape(-1, 3).mean(axis=0)) / deviation
    with torch.no_grad():
        sigma = run.noise.scale(torch.from_numpy(x.transpose(0, 3, 1, 2)).float()).numpy()
    np.testing.assert_allclose(found.sigma, sigma.transpose(0, 2, 3, 1) * deviation, rtol=1e-3)


def test_without_a_test_part_training_rows_are_shown(train: Train, files: Path) -> None:
    run = train(files / "grey.npy", objective="paper", noise={"distribution": "uniform"})
    found = collect(run)
    assert found.part == "training"
    assert found.labels is None
    assert found.symbol == "w"
    assert found.sigma.shape == (8, 8, 6)
    np.testing.assert_array_equal(found.originals, np.load(files / "grey.npy")[np.arange(8) * 30 // 8])
    assert (np.abs(found.epsilon) <= found.sigma * (1 + 1e-6)).all()


def test_rows_of_length_one_get_their_length_back(train: Train, files: Path) -> None:
    run = train(files / "counts.npy", objective="paper")
    assert run.standardizer.unit_rows
    found = collect(run, samples=5)
    standard = run.standardizer.apply(found.originals)
    moved = standard + found.epsilon / (run.standardizer.scale * np.linalg.norm(found.originals, axis=1)[:, None])
    undone = run.standardizer.undo(moved, np.linalg.norm(found.originals, axis=1))
    np.testing.assert_allclose(found.noisy, undone, atol=1e-6)
    draws = np.stack([collect(run, samples=5, seed=seed).epsilon for seed in range(200)])
    np.testing.assert_allclose(draws.std(axis=0), found.sigma, rtol=0.35)


def test_the_seed_decides_the_draw_and_the_callers_numbers_stay(table_run: Model) -> None:
    state = torch.get_rng_state()
    first, again, other = (collect(table_run, seed=seed).epsilon for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert torch.equal(torch.get_rng_state(), state)


def test_what_cannot_be_shown_is_said(train: Train, files: Path, colour_run: Model) -> None:
    plain = train(files / "table.csv", data={"label": "group"}, views={"noise": "gaussian"})
    with pytest.raises(UserError, match=r"no learned noise: its views\.noise is 'gaussian'"):
        collect(plain)
    with pytest.raises(UserError, match="samples is 33: at most 32 pictures"):
        collect(colour_run, samples=33)
    with pytest.raises(UserError, match="samples is 0"):
        collect(colour_run, samples=0)
